// Windows whose base is at no multiple of anything, and elements of every width at places that fit
// none of them. What lies around the elements stays as it was. MPI-4.1 sections 12.2.1 and 12.3.
// ranks: 1 2 4
// settings: FOMPI_ADOPT=never

#include "created.h"

enum { WINDOW = 208, AROUND = 64, BYTES = WINDOW + 2 * AROUND, COUNT = 5, WIDTHS = 6 };

struct width {
    MPI_Datatype datatype;
    int bytes, is_integer;
};

static struct width widths[WIDTHS];

static unsigned char pattern(int origin, int salt, int i)
{
    return (unsigned char)(37 * origin + 11 * salt + 5 * i + 1);
}

static void fill(char *values, int origin, int salt, int bytes)
{
    for (int i = 0; i < bytes; i++)
        values[i] = (char)pattern(origin, salt, i);
}

// What MPI_BXOR or MPI_REPLACE makes of `bytes` bytes.
static void combine(char *into, const char *values, int bytes, int replace)
{
    for (int i = 0; i < bytes; i++)
        into[i] = replace ? values[i] : into[i] ^ values[i];
}

// The calls that do not read, and the same on `image`, a copy of the target's window.
static void write_elements(MPI_Win win, int target, int origin, int w, int disp, char *image)
{
    static char values[2][COUNT * 16];
    MPI_Datatype type = widths[w].datatype;
    const int bytes = COUNT * widths[w].bytes, replace = !widths[w].is_integer;
    fill(values[0], origin, w, bytes);
    fill(values[1], origin, w + 100, bytes);
    combine(image + disp, values[0], bytes, 1);
    combine(image + disp, values[1], bytes, replace);
    if (win == MPI_WIN_NULL)
        return;
    OK(MPI_Put(values[0], COUNT, type, target, disp, COUNT, type, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Accumulate(values[1], COUNT, type, target, disp, COUNT, type,
                      replace ? MPI_REPLACE : MPI_BXOR, win));
    OK(MPI_Win_flush(target, win));
}

// The calls that read as well.
static void exchange_elements(MPI_Win win, int target, int origin, int w, int disp, char *image)
{
    static char values[COUNT * 16], got[COUNT * 16], was[16];
    MPI_Datatype type = widths[w].datatype;
    const int width = widths[w].bytes, bytes = COUNT * width, replace = !widths[w].is_integer;
    MPI_Op op = replace ? MPI_REPLACE : MPI_BXOR;
    fill(values, origin, w + 200, bytes);
    if (win != MPI_WIN_NULL) {
        OK(MPI_Get_accumulate(values, COUNT, type, got, COUNT, type, target, disp, COUNT, type, op,
                              win));
        OK(MPI_Win_flush(target, win));
        CHECK(memcmp(got, image + disp, (size_t)bytes) == 0);
    }
    combine(image + disp, values, bytes, replace);
    memcpy(was, image + disp + 2 * width, (size_t)width);
    combine(image + disp + 2 * width, values, width, replace);
    if (win != MPI_WIN_NULL) {
        OK(MPI_Fetch_and_op(values, got, type, target, disp + 2 * width, op, win));
        OK(MPI_Win_flush(target, win));
        CHECK(memcmp(got, was, (size_t)width) == 0);
    }
    if (replace)
        return;
    memcpy(was, image + disp, (size_t)width);
    combine(image + disp, values, width, 1);
    if (win != MPI_WIN_NULL) {
        OK(MPI_Compare_and_swap(values, was, got, type, target, disp, win));
        OK(MPI_Win_flush(target, win));
        CHECK(memcmp(got, was, (size_t)width) == 0);
    }
}

// All widths one after the other, with odd gaps; MPI_WIN_NULL does it on the image alone.
static void all_widths(MPI_Win win, int target, int origin, char *image)
{
    int disp = 1;
    for (int w = 0; w < WIDTHS; w++) {
        write_elements(win, target, origin, w, disp, image);
        exchange_elements(win, target, origin, w, disp, image);
        disp += COUNT * widths[w].bytes + 1 + w % 2;
    }
    CHECK(disp <= WINDOW);
}

static void try(int shift, char *memory)
{
    char image[WINDOW], got[WINDOW];
    memset(memory, 0x55, BYTES + 64);
    MPI_Win win = window_over(memory + AROUND + shift, WINDOW, 1);
    OK(MPI_Win_lock_all(0, win));
    memset(image, 0x55, sizeof image);
    all_widths(win, next_rank(), rank, image);
    OK(MPI_Get(got, WINDOW, MPI_BYTE, next_rank(), 0, WINDOW, MPI_BYTE, win));
    OK(MPI_Win_unlock_all(win));
    CHECK(memcmp(got, image, sizeof image) == 0);
    lock_own_memory(win);
    memset(image, 0x55, sizeof image);
    all_widths(MPI_WIN_NULL, 0, previous_rank(), image);
    for (int i = 0; i < BYTES + 64; i++) {
        int inside = i >= AROUND + shift && i < AROUND + shift + WINDOW;
        char want = inside ? image[i - AROUND - shift] : 0x55;
        if (memory[i] != want)
            check_failed(__FILE__, __LINE__, "base %d bytes behind a multiple of 64: byte %d is "
                         "%d, not %d", shift, i - AROUND - shift, memory[i], want);
    }
    unlock_own_memory(win);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    const struct width all[WIDTHS] = {
        {MPI_INT8_T, 1, 1}, {MPI_INT16_T, 2, 1}, {MPI_INT32_T, 4, 1}, {MPI_INT64_T, 8, 1},
        {MPI_DOUBLE, 8, 0}, {MPI_C_DOUBLE_COMPLEX, 16, 0},
    };
    check_start(&argc, &argv);
    memcpy(widths, all, sizeof all);
    char *heap = heap_memory(BYTES + 64), *from_mpi = mpi_memory(BYTES + 64);
    for (int shift = 0; shift < 64; shift++) {
        // Each rank has another alignment.
        try((shift + 7 * rank) % 64, heap);
        if (shift % 4 == 3)
            try((shift + 7 * rank) % 64, from_mpi);
    }
    OK(MPI_Free_mem(from_mpi));
    return check_end();
}
