// Buffers in memory of a GPU, of each kind, as origin, result and compare of every call, on an
// allocated window of this library: the data are right, and no byte between the elements of a
// datatype changes. The program that includes this names the library.

#include "gpu.h"

enum { N = 1000, LARGE = 1 << 19 };

static MPI_Win win;
static int *base; // N integers and more of this rank
static int target;
static int kind; // of memory
static int host[LARGE]; // what the processor makes or sees of memory of that kind

static void write_back(int *device, int n)
{
    gpu_write(kind, device, host, (size_t)n * sizeof *host);
}

static void read_device(int *device, int n)
{
    gpu_read(kind, host, device, (size_t)n * sizeof *host);
}

// Another value in each element.
static void fill(int *at, int n, int first)
{
    for (int i = 0; i < n; i++)
        at[i] = first + i;
}

static void check_filled(const int *at, int n, int first)
{
    for (int i = 0; i < n; i++)
        CHECK_EQ(at[i], first + i);
}

// The window has these values at its begin.
static void check_window(int n, int first)
{
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Win_sync(win));
    check_filled(base, n, first);
    MPI_Barrier(MPI_COMM_WORLD);
}

// The same in memory of that kind.
static void fill_device(int *device, int n, int first)
{
    fill(host, n, first);
    write_back(device, n);
}

static void check_device(int *device, int n, int first)
{
    read_device(device, n);
    check_filled(host, n, first);
}

static void puts_and_gets(int *device)
{
    for (int round = 0; round < 3; round++) {
        fill_device(device, N, 100 * round);
        OK(MPI_Put(device, N, MPI_INT, target, 0, N, MPI_INT, win));
        OK(MPI_Win_flush(target, win));
        check_window(N, 100 * round);
        fill_device(device, N, -1);
        OK(MPI_Get(device, N, MPI_INT, target, 0, N, MPI_INT, win));
        OK(MPI_Win_flush(target, win));
        check_device(device, N, 100 * round);
    }
    fill_device(device, 1, 77);
    OK(MPI_Put(device, 1, MPI_INT, target, 0, 1, MPI_INT, win));
    OK(MPI_Win_flush(target, win));
    check_window(1, 77);
    fill_device(device, LARGE, 5);
    OK(MPI_Put(device, LARGE, MPI_INT, target, 0, LARGE, MPI_INT, win));
    OK(MPI_Win_flush(target, win));
    check_window(LARGE, 5);
}

static void requests(int *device)
{
    MPI_Request request;
    fill_device(device, N, 31);
    OK(MPI_Rput(device, N, MPI_INT, target, 0, N, MPI_INT, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(target, win));
    check_window(N, 31);
    fill_device(device, N, -1);
    OK(MPI_Rget(device, N, MPI_INT, target, 0, N, MPI_INT, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_device(device, N, 31);
    fill_device(device, N, 0);
    OK(MPI_Raccumulate(device, N, MPI_INT, target, 0, N, MPI_INT, MPI_REPLACE, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(target, win));
    check_window(N, 0);
}

static void accumulates(int *device, int *result)
{
    fill(base, N, 10);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < N; i++)
        host[i] = 1;
    write_back(device, N);
    OK(MPI_Accumulate(device, N, MPI_INT, target, 0, N, MPI_INT, MPI_SUM, win));
    OK(MPI_Accumulate(device, 1, MPI_INT, target, N, 1, MPI_INT, MPI_REPLACE, win));
    OK(MPI_Win_flush(target, win));
    check_window(N, 11);
    OK(MPI_Get_accumulate(device, N, MPI_INT, result, N, MPI_INT, target, 0, N, MPI_INT, MPI_SUM,
                          win));
    OK(MPI_Win_flush(target, win));
    check_device(result, N, 11);
    check_window(N, 12);
    // MPI_NO_OP has no origin: its bytes, which mostly do not exist, must not be used.
    fill_device(result, N, 0);
    OK(MPI_Get_accumulate(device + LARGE - 1, N, MPI_INT, result, N, MPI_INT, target, 0, N, MPI_INT,
                          MPI_NO_OP, win));
    OK(MPI_Win_flush(target, win));
    check_device(result, N, 12);
}

// The element at an index of memory of that kind.
static int device_element(int *device, int index)
{
    read_device(device, index + 1);
    return host[index];
}

static void set_device_element(int *device, int index, int value)
{
    host[0] = value;
    write_back(device + index, 1);
}

static void single_elements(int *device, int *result)
{
    fill(base, N, 50);
    MPI_Barrier(MPI_COMM_WORLD);
    set_device_element(device, 3, 5);
    for (int round = 0; round < 3; round++) {
        set_device_element(result, 1, -1);
        OK(MPI_Fetch_and_op(device + 3, result + 1, MPI_INT, target, 0, MPI_SUM, win));
        OK(MPI_Win_flush(target, win));
        CHECK_EQ(device_element(result, 1), 50 + 5 * round);
    }
    OK(MPI_Fetch_and_op(NULL, result, MPI_INT, target, 0, MPI_NO_OP, win));
    OK(MPI_Win_flush(target, win));
    CHECK_EQ(device_element(result, 0), 65);
    set_device_element(device, 0, 1000);
    set_device_element(device, 1, 65);
    OK(MPI_Compare_and_swap(device, device + 1, result + 2, MPI_INT, target, 0, win));
    OK(MPI_Win_flush(target, win));
    CHECK_EQ(device_element(result, 2), 65);
    int on_stack = 1000;
    OK(MPI_Compare_and_swap(device + 1, &on_stack, result + 2, MPI_INT, target, 0, win));
    OK(MPI_Win_flush(target, win));
    CHECK_EQ(device_element(result, 2), 1000);
    check_window(1, 65);
}

// A vector with holes, and a lower bound that is not 0.
static void derived(int *device, int stride)
{
    enum { BLOCKS = 50, LENGTH = 3, INTS = 1000 };
    const int first = stride < 0 ? -stride * BLOCKS : 0;
    int expected[INTS];
    MPI_Datatype vector, moved;
    OK(MPI_Type_vector(BLOCKS, LENGTH, stride, MPI_INT, &vector));
    OK(MPI_Type_create_resized(vector, -8, 4, &moved));
    OK(MPI_Type_commit(&moved));
    fill_device(device, INTS, 0);
    OK(MPI_Put(device + first, 1, moved, target, 0, BLOCKS * LENGTH, MPI_INT, win));
    OK(MPI_Win_flush(target, win));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Win_sync(win));
    for (int i = 0; i < BLOCKS * LENGTH; i++)
        CHECK_EQ(base[i], first + stride * (i / LENGTH) + i % LENGTH);
    MPI_Barrier(MPI_COMM_WORLD);
    fill(base, BLOCKS * LENGTH, 9000);
    MPI_Barrier(MPI_COMM_WORLD);
    // Fewer elements than the type has: the other ones keep their values.
    OK(MPI_Get(device + first, 1, moved, target, 0, BLOCKS * LENGTH - 4, MPI_INT, win));
    OK(MPI_Win_flush(target, win));
    fill(expected, INTS, 0);
    for (int i = 0; i < BLOCKS * LENGTH - 4; i++)
        expected[first + stride * (i / LENGTH) + i % LENGTH] = 9000 + i;
    read_device(device, INTS);
    for (int i = 0; i < INTS; i++)
        CHECK_EQ(host[i], expected[i]);
    OK(MPI_Type_free(&vector));
    OK(MPI_Type_free(&moved));
}

// One datatype with elements in memory of both kinds, by their addresses, from MPI_BOTTOM.
static void both_kinds(int *device)
{
    int on_stack[2] = { 1, 2 }, lengths[] = { 2, 1 };
    MPI_Aint places[2];
    MPI_Datatype type;
    OK(MPI_Get_address(on_stack, &places[0]));
    OK(MPI_Get_address(device, &places[1]));
    OK(MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    fill_device(device, 2, 3);
    OK(MPI_Put(MPI_BOTTOM, 1, type, target, 0, 3, MPI_INT, win));
    OK(MPI_Win_flush(target, win));
    check_window(3, 1);
    fill(base, 3, 20);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Get(MPI_BOTTOM, 1, type, target, 0, 3, MPI_INT, win));
    OK(MPI_Win_flush(target, win));
    check_filled(on_stack, 2, 20);
    read_device(device, 2);
    CHECK_EQ(host[0], 22);
    CHECK_EQ(host[1], 4);
    OK(MPI_Type_free(&type));
}

// Elements with padding: it keeps its bytes.
static void padded(int *device)
{
    struct pair { short value; int index; } pairs[2], *there = (void *)device;
    struct pair *in_window = (void *)base;
    memset(pairs, 0x55, sizeof pairs);
    pairs[0].value = 3, pairs[0].index = 4;
    gpu_write(kind, there, pairs, sizeof pairs);
    memset(base, 0, 2 * sizeof *in_window);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Get_accumulate(there, 1, MPI_SHORT_INT, there + 1, 1, MPI_SHORT_INT, target, 0, 1,
                          MPI_SHORT_INT, MPI_MAXLOC, win));
    OK(MPI_Win_flush(target, win));
    gpu_read(kind, pairs, there, sizeof pairs);
    CHECK_EQ(pairs[1].value, 0);
    CHECK_EQ(pairs[1].index, 0);
    CHECK(!has_gpu() || ((char *)&pairs[1])[2] == 0x55);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(in_window[0].value, 3);
    CHECK_EQ(in_window[0].index, 4);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Wrong calls are found before any copy.
static void wrong_calls(int *device)
{
    long before = gpu_copies();
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    EXPECT(MPI_Put(device, -1, MPI_INT, target, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
    EXPECT(MPI_Put(device, 1, MPI_INT, size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    EXPECT(MPI_Put(device, 1, MPI_DATATYPE_NULL, target, 0, 1, MPI_INT, win), MPI_ERR_TYPE);
    OK(MPI_Put(device, 0, MPI_INT, target, 0, 0, MPI_INT, win));
    OK(MPI_Put(device, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    CHECK_EQ(gpu_copies(), before);
}

static void all_calls(void)
{
    int *device = gpu_allocate(kind, LARGE * sizeof *device);
    int *result = gpu_allocate(kind, N * sizeof *result);
    long before = gpu_copies();
    puts_and_gets(device);
    requests(device);
    MPI_Barrier(MPI_COMM_WORLD);
    accumulates(device, result);
    MPI_Barrier(MPI_COMM_WORLD);
    single_elements(device, result);
    MPI_Barrier(MPI_COMM_WORLD);
    derived(device, 7);
    MPI_Barrier(MPI_COMM_WORLD);
    derived(device, -7);
    MPI_Barrier(MPI_COMM_WORLD);
    both_kinds(device);
    MPI_Barrier(MPI_COMM_WORLD);
    padded(device);
    wrong_calls(device);
    MPI_Barrier(MPI_COMM_WORLD);
    if (gpu_test_copies != NULL)
        CHECK((gpu_copies() > before) == !is_of_host(kind));
}

static int run(int argc, char **argv, const char *library)
{
    gpu_start(library);
    check_start(&argc, &argv);
    target = next_rank();
    base = window_of(LARGE * sizeof *base, sizeof *base, &win);
    OK(MPI_Win_lock_all(0, win));
    for (kind = DEVICE; kind < GPU_KINDS; kind++)
        if (gpu_offers(kind))
            all_calls();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
