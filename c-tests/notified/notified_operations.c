// Each notified operation adds 1 to one counter of its target, behind its data: puts, gets,
// accumulates and get-accumulates, with requests and with large counts, of many lengths and of no
// bytes, contiguous and not, on each kind of window. Issue 59 of the MPI Forum. The plain MPI has none.
// ranks: 1 2 4

#include "notified.h"

enum { COUNT = 5000, KINDS = 4 };

static MPI_Win win;
static int *base;
static int next;

static void make(int kind)
{
    MPI_Aint bytes = COUNT * sizeof(int);
    switch (kind) {
    case 0:
        OK(MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        break;
    case 1: // the heap of the program
        base = malloc(bytes);
        OK(MPI_Win_create(base, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        break;
    case 2: // memory that others map
        OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &base));
        OK(MPI_Win_create(base, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        break;
    default:
        base = malloc(bytes);
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_attach(win, base, bytes));
    }
    for (int i = 0; i < COUNT; i++)
        base[i] = -1;
}

static void unmake(int kind)
{
    if (kind == 3)
        OK(MPI_Win_detach(win, base));
    OK(MPI_Win_free(&win));
    if (kind == 2)
        OK(MPI_Free_mem(base));
    else if (kind != 0)
        free(base);
}

// The displacement of an element at a rank.
static MPI_Aint at(int kind, const MPI_Aint *bases, int target, int element)
{
    return kind == 3 ? bases[target] + element * (MPI_Aint)sizeof(int) : element;
}

static void complete(MPI_Request *request)
{
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

static void run(int kind)
{
    make(kind);
    MPI_Aint own, *bases = malloc(size * sizeof *bases);
    OK(MPI_Get_address(base, &own));
    OK(MPI_Allgather(&own, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD));
    OK(FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, 8));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));

    static int out[COUNT], in[COUNT];
    static const int lengths[] = { 0, 1, 2, 3, 7, 64, 500, 2049, COUNT };
    MPI_Request request;
    MPI_Count all = 0;
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int n = lengths[i];
        for (int way = 0; way < 4; way++) {
            for (int k = 0; k < n; k++)
                out[k] = 1000 * (int)all + way + k;
            MPI_Aint disp = at(kind, bases, next, 0);
            switch (way) {
            case 0:
                OK(FOMPI_Put_notify(out, n, MPI_INT, next, disp, n, MPI_INT, 3, win));
                break;
            case 1:
                OK(FOMPI_Put_notify_c(out, n, MPI_INT, next, disp, n, MPI_INT, 3, win));
                break;
            case 2:
                OK(FOMPI_Rput_notify(out, n, MPI_INT, next, disp, n, MPI_INT, 3, win, &request));
                complete(&request);
                break;
            default:
                OK(FOMPI_Rput_notify_c(out, n, MPI_INT, next, disp, n, MPI_INT, 3, win, &request));
                complete(&request);
            }
            if (way % 2)
                OK(FOMPI_Win_wait_notify(win, 3, ++all));
            else
                poll_notified(win, 3, ++all);
            for (int k = 0; k < n; k++)
                CHECK_EQ(base[k], 1000 * (int)(all - 1) + way + k);
            // The source may change its buffer, and the target may be written again.
            OK(MPI_Win_flush(next, win));
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    }
    CHECK_EQ(notified(win, 3), all);

    // Gets: the target may change the data when it is notified.
    for (int way = 0; way < 4; way++) {
        for (int k = 0; k < COUNT; k++)
            base[k] = 7 * k + way;
        OK(MPI_Win_sync(win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        int n = way % 2 ? COUNT : 2;
        MPI_Aint disp = at(kind, bases, next, 0);
        if (way == 0)
            OK(FOMPI_Get_notify(in, n, MPI_INT, next, disp, n, MPI_INT, 0, win));
        else if (way == 1)
            OK(FOMPI_Get_notify_c(in, n, MPI_INT, next, disp, n, MPI_INT, 0, win));
        else if (way == 2)
            OK(FOMPI_Rget_notify(in, n, MPI_INT, next, disp, n, MPI_INT, 0, win, &request));
        else
            OK(FOMPI_Rget_notify_c(in, n, MPI_INT, next, disp, n, MPI_INT, 0, win, &request));
        OK(FOMPI_Win_wait_notify(win, 0, way + 1));
        for (int k = 0; k < COUNT; k++)
            base[k] = -2;
        if (way >= 2)
            complete(&request);
        else
            OK(MPI_Win_flush_local(next, win));
        for (int k = 0; k < n; k++)
            CHECK_EQ(in[k], 7 * k + way);
        OK(MPI_Win_flush(next, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }

    // Accumulates: of one element and of many, with results and without.
    for (int k = 0; k < COUNT; k++) {
        base[k] = 0;
        out[k] = 1;
    }
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    static const int counts[] = { 1, 2, 3000 };
    for (int i = 0; i < 3; i++) {
        int n = counts[i];
        MPI_Aint disp = at(kind, bases, next, 0);
        OK(FOMPI_Accumulate_notify(out, n, MPI_INT, next, disp, n, MPI_INT, MPI_SUM, 7, win));
        OK(FOMPI_Accumulate_notify_c(out, n, MPI_INT, next, disp, n, MPI_INT, MPI_SUM, 7, win));
        OK(FOMPI_Raccumulate_notify(out, n, MPI_INT, next, disp, n, MPI_INT, MPI_SUM, 7, win, &request));
        complete(&request);
        OK(FOMPI_Raccumulate_notify_c(out, n, MPI_INT, next, disp, n, MPI_INT, MPI_SUM, 7, win,
                                      &request));
        complete(&request);
        OK(FOMPI_Get_accumulate_notify(out, n, MPI_INT, in, n, MPI_INT, next, disp, n, MPI_INT, MPI_SUM,
                                       7, win));
        OK(MPI_Win_flush_local(next, win));
        CHECK_EQ(in[0], 8 * i + 4);
        OK(FOMPI_Get_accumulate_notify_c(out, n, MPI_INT, in, n, MPI_INT, next, disp, n, MPI_INT,
                                         MPI_SUM, 7, win));
        OK(MPI_Win_flush_local(next, win));
        CHECK_EQ(in[n - 1], 5);
        OK(FOMPI_Rget_accumulate_notify(out, n, MPI_INT, in, n, MPI_INT, next, disp, n, MPI_INT, MPI_SUM,
                                        7, win, &request));
        complete(&request);
        CHECK_EQ(in[0], 8 * i + 6);
        OK(FOMPI_Rget_accumulate_notify_c(out, n, MPI_INT, in, n, MPI_INT, next, disp, n, MPI_INT,
                                          MPI_SUM, 7, win, &request));
        complete(&request);
        CHECK_EQ(in[0], 8 * i + 7);
        OK(FOMPI_Win_wait_notify(win, 7, 8 * (i + 1)));
        CHECK_EQ(base[0], 8 * (i + 1));
        CHECK_EQ(base[n - 1], 8);
        for (int k = 1; k < COUNT; k++)
            base[k] = 0;
        OK(MPI_Win_sync(win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }

    // A column into a row, and to nobody.
    MPI_Datatype column;
    OK(MPI_Type_vector(100, 1, 3, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    for (int k = 0; k < COUNT; k++)
        out[k] = k;
    OK(FOMPI_Put_notify(out, 1, column, next, at(kind, bases, next, 0), 100, MPI_INT, 1, win));
    poll_notified(win, 1, 1);
    for (int k = 0; k < 100; k++)
        CHECK_EQ(base[k], 3 * k);
    OK(FOMPI_Put_notify(out, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, 99, win));
    OK(MPI_Type_free(&column));
    OK(MPI_Win_flush_all(win));

    OK(MPI_Barrier(MPI_COMM_WORLD));
    static const MPI_Count expected[8] = { 4, 1, 0, 36, 0, 0, 0, 24 };
    for (int index = 0; index < 8; index++) {
        MPI_Count value = -1;
        OK(FOMPI_Win_reset_notify_value(win, index, &value));
        CHECK_EQ(value, expected[index]);
        CHECK_EQ(notified(win, index), 0);
    }
    OK(MPI_Win_unlock_all(win));
    free(bases);
    unmake(kind);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    next = next_rank();
    if (has_notified())
        for (int kind = 0; kind < KINDS; kind++)
            run(kind);
    return check_end();
}
