// A program that declares the calls of the MPI Forum's proposal itself and is linked with nothing but
// the MPI, as one that was built with the MPI of the future: tests/test_next.py runs it with
// libfompi_next.so and without. Prints whether each rank has the names; where it has, all calls are
// made around the ring, by turns under their MPI_ and their PMPI_ names, and checked.

#define _GNU_SOURCE // RTLD_DEFAULT
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define TARGET(Count) int rank, MPI_Aint disp, Count target_count, MPI_Datatype target_type
#define FROM(Count) const void *from, Count count, MPI_Datatype type
#define RESULT(Count) void *result, Count result_count, MPI_Datatype result_type

#define DECLARE(name, ...)                                                                         \
    int MPI_##name(__VA_ARGS__) __attribute__((weak));                                             \
    int PMPI_##name(__VA_ARGS__) __attribute__((weak));
#define DECLARE_OPERATIONS(c, Count)                                                               \
    DECLARE(Put_notify##c, FROM(Count), TARGET(Count), int index, MPI_Win win)                     \
    DECLARE(Get_notify##c, void *to, Count count, MPI_Datatype type, TARGET(Count), int index,     \
            MPI_Win win)                                                                           \
    DECLARE(Accumulate_notify##c, FROM(Count), TARGET(Count), MPI_Op op, int index, MPI_Win win)   \
    DECLARE(Get_accumulate_notify##c, FROM(Count), RESULT(Count), TARGET(Count), MPI_Op op,        \
            int index, MPI_Win win)                                                                \
    DECLARE(Rput_notify##c, FROM(Count), TARGET(Count), int index, MPI_Win win,                    \
            MPI_Request *request)                                                                  \
    DECLARE(Rget_notify##c, void *to, Count count, MPI_Datatype type, TARGET(Count), int index,    \
            MPI_Win win, MPI_Request *request)                                                     \
    DECLARE(Raccumulate_notify##c, FROM(Count), TARGET(Count), MPI_Op op, int index, MPI_Win win,  \
            MPI_Request *request)                                                                  \
    DECLARE(Rget_accumulate_notify##c, FROM(Count), RESULT(Count), TARGET(Count), MPI_Op op,       \
            int index, MPI_Win win, MPI_Request *request)

DECLARE_OPERATIONS(, int)
DECLARE_OPERATIONS(_c, MPI_Count)
DECLARE(Win_set_num_notify, MPI_Win win, MPI_Info info, int number)
DECLARE(Win_get_num_notify, MPI_Win win, int rank, int *number)
DECLARE(Win_get_notify_value, MPI_Win win, int index, MPI_Count *value)
DECLARE(Win_reset_notify_value, MPI_Win win, int index, MPI_Count *value)

static const char *const names[] = {
    "Put_notify", "Put_notify_c", "Get_notify", "Get_notify_c", "Accumulate_notify",
    "Accumulate_notify_c", "Get_accumulate_notify", "Get_accumulate_notify_c", "Rput_notify",
    "Rput_notify_c", "Rget_notify", "Rget_notify_c", "Raccumulate_notify", "Raccumulate_notify_c",
    "Rget_accumulate_notify", "Rget_accumulate_notify_c", "Win_set_num_notify",
    "Win_get_num_notify", "Win_get_notify_value", "Win_reset_notify_value",
};

enum { COUNT = 5, PLACES = 8 };

static int wrong, rank, size;
static MPI_Win win;
static int *base;

static void check(int good, const char *what)
{
    if (!good) {
        printf("rank %d: wrong: %s\n", rank, what);
        wrong = 1;
    }
}

static int names_found(void)
{
    int found = 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        for (int is_pmpi = 0; is_pmpi < 2; is_pmpi++) {
            char name[64];
            snprintf(name, sizeof name, "%sMPI_%s", is_pmpi ? "P" : "", names[i]);
            found += dlsym(RTLD_DEFAULT, name) != NULL;
        }
    return found;
}

// Waits for a counter by the loop of the proposal.
static void wait_for(int index, MPI_Count threshold)
{
    MPI_Count value = 0;
    while (value < threshold)
        MPI_Win_get_notify_value(win, index, &value);
}

static void wait_for_request(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

#define ON(place) next, (place) * COUNT, COUNT, MPI_INT

static void run(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, number = 0;
    int out[COUNT], in[6][COUNT];
    MPI_Request request;
    MPI_Count value;
    for (int i = 0; i < COUNT; i++)
        out[i] = 100 * rank + i;
    check(MPI_Win_set_num_notify(win, MPI_INFO_NULL, rank + 3) == MPI_SUCCESS, "set_num");
    MPI_Win_get_num_notify(win, next, &number);
    check(number == next + 3, "get_num of the next rank");
    PMPI_Win_get_num_notify(win, rank, &number);
    check(number == rank + 3, "get_num of this rank");
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);

    // Each place belongs to one call that changes it.
    MPI_Put_notify(out, COUNT, MPI_INT, ON(0), 0, win);
    PMPI_Put_notify_c(out, COUNT, MPI_INT, ON(1), 0, win);
    MPI_Rput_notify(out, COUNT, MPI_INT, ON(2), 0, win, &request);
    wait_for_request(&request);
    PMPI_Rput_notify_c(out, COUNT, MPI_INT, ON(3), 0, win, &request);
    wait_for_request(&request);
    PMPI_Accumulate_notify(out, COUNT, MPI_INT, ON(4), MPI_SUM, 1, win);
    MPI_Accumulate_notify_c(out, COUNT, MPI_INT, ON(4), MPI_SUM, 1, win);
    PMPI_Raccumulate_notify(out, COUNT, MPI_INT, ON(4), MPI_SUM, 1, win, &request);
    wait_for_request(&request);
    MPI_Raccumulate_notify_c(out, COUNT, MPI_INT, ON(4), MPI_SUM, 1, win, &request);
    wait_for_request(&request);
    MPI_Get_accumulate_notify(out, COUNT, MPI_INT, in[0], COUNT, MPI_INT, ON(5), MPI_SUM, 1, win);
    MPI_Win_flush(next, win);
    PMPI_Get_accumulate_notify_c(out, COUNT, MPI_INT, in[1], COUNT, MPI_INT, ON(5), MPI_SUM, 1,
                                 win);
    MPI_Win_flush(next, win);
    MPI_Rget_accumulate_notify(out, COUNT, MPI_INT, in[2], COUNT, MPI_INT, ON(5), MPI_SUM, 1, win,
                               &request);
    wait_for_request(&request);
    MPI_Win_flush(next, win);
    PMPI_Rget_accumulate_notify_c(out, COUNT, MPI_INT, in[3], COUNT, MPI_INT, ON(5), MPI_SUM, 1,
                                  win, &request);
    wait_for_request(&request);
    wait_for(0, 4);
    wait_for(1, 8);
    for (int i = 0; i < COUNT; i++) {
        int of_before = 100 * before + i, own = 100 * rank + i;
        for (int place = 0; place < 4; place++)
            check(base[place * COUNT + i] == of_before, "data of a put");
        check(base[4 * COUNT + i] == 4 * of_before, "sum of accumulates");
        check(base[5 * COUNT + i] == 4 * of_before, "sum of get_accumulates");
        for (int k = 0; k < 4; k++)
            check(in[k][i] == k * own, "result of a get_accumulate");
    }

    PMPI_Get_notify(in[0], COUNT, MPI_INT, ON(6), 2, win);
    MPI_Get_notify_c(in[1], COUNT, MPI_INT, ON(6), 2, win);
    PMPI_Rget_notify(in[2], COUNT, MPI_INT, ON(6), 2, win, &request);
    wait_for_request(&request);
    MPI_Rget_notify_c(in[3], COUNT, MPI_INT, ON(6), 2, win, &request);
    wait_for_request(&request);
    MPI_Win_flush(next, win);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < COUNT; i++)
            check(in[k][i] == -1 - next, "data of a get");
    wait_for(2, 4);
    MPI_Win_reset_notify_value(win, 2, &value);
    check(value == 4, "value before the reset");
    PMPI_Win_get_notify_value(win, 2, &value);
    check(value == 0, "value after the reset");
    PMPI_Win_reset_notify_value(win, 0, &value);
    check(value == 4, "value of the puts");
    MPI_Win_unlock_all(win);
    check(PMPI_Win_set_num_notify(win, MPI_INFO_NULL, 1) == MPI_SUCCESS, "set_num again");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int found = names_found();
    check((MPI_Put_notify != NULL) == (found > 0), "what is linked and what dlsym finds");
    printf("rank %d has %d names\n", rank, found);
    fflush(stdout);
    if (found > 0) {
        MPI_Win_allocate(PLACES * COUNT * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                         &base, &win);
        memset(base, 0, PLACES * COUNT * sizeof(int));
        for (int i = 0; i < COUNT; i++)
            base[6 * COUNT + i] = -1 - rank;
        MPI_Barrier(MPI_COMM_WORLD);
        run();
        printf("rank %d %s\n", rank, wrong ? "failed" : "is right");
        MPI_Win_free(&win);
    }
    MPI_Finalize();
    return wrong;
}
