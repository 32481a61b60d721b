// Ranks that may not copy the memory of others: a seccomp filter answers EPERM to process_vm_readv
// and process_vm_writev, as those of containers do.
// usage: denied MODE [RANK|-1 [readv|writev|both]]
//   delegated  the filter is there before the first window: windows that need the calls fall back
//              to the host MPI, the others are libfompi's own
//   refused    as delegated, and each rank gets an error in place of a delegated window
//   differing  as refused, although only rank 1 has FOMPI_FALLBACK=error
//   late       the filter comes when the windows are there: accesses are errors from then on
//   fatal      as late; the first error ends the job
// RANK has the filter alone; -1, as without it: all have.

#include "robust.h"
#include "../refused_calls.h"

#include <sys/uio.h>

static int only_rank = -1;
static const char *which = "both";

static void filter(void)
{
    unsigned readv = SYS_process_vm_readv, writev = SYS_process_vm_writev;
    if (strcmp(which, "readv") == 0)
        writev = readv;
    if (strcmp(which, "writev") == 0)
        readv = writev;
    char from = 1, to = 0;
    struct iovec here = {&to, 1}, there = {&from, 1};
    if (only_rank >= 0 && rank != only_rank)
        return;
    CHECK(refuse_calls(readv, writev));
    CHECK(syscall(readv, getpid(), &here, 1, &there, 1, 0) == -1 && errno == EPERM);
}

// Puts to the next rank, gets it back, and adds to a counter of rank 0; `at` and `counter_at` are
// displacements there, in bytes.
static void use(MPI_Win win, MPI_Aint at, MPI_Aint counter_at, int64_t *counter)
{
    int next = (rank + 1) % size;
    int64_t value = 1000 + rank, seen = 0, one = 1, before = -1;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, win));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Get(&seen, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, win));
    OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, counter_at, 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, counter_at, MPI_SUM, win));
    OK(MPI_Win_unlock_all(win));
    CHECK(seen == value && before >= 1 && before < 2 * size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK(rank > 0 || *counter == 2 * size);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void use_and_free(MPI_Win win, int64_t *memory)
{
    use(win, 0, 8, &memory[1]);
    OK(MPI_Win_free(&win));
}

static int64_t *zeros(void)
{
    return calloc(8, sizeof(int64_t));
}

static void created(MPI_Comm comm)
{
    int64_t *memory = zeros();
    MPI_Win win;
    OK(MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, comm, &win));
    use_and_free(win, memory);
    free(memory);
}

static void dynamic(void)
{
    int64_t *memory = zeros();
    MPI_Aint of_next[2], of_first[2];
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, memory, 64));
    share_addresses(memory, of_next, of_first);
    use(win, of_next[0], of_first[1], &memory[1]);
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_free(&win));
    free(memory);
}

// Memory that the others have mapped needs nobody's permission.
static void own_transport(void)
{
    int64_t *memory;
    MPI_Win win;
    OK(MPI_Alloc_mem(64, MPI_INFO_NULL, &memory));
    memset(memory, 0, 64);
    OK(MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    use_and_free(win, memory);
    OK(MPI_Free_mem(memory));
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    memset(memory, 0, 64);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    use_and_free(win, memory);
}

static void refused(void)
{
    int64_t *memory = zeros();
    MPI_Win win;
    EXPECT(MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
           MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win),
           MPI_ERR_UNSUPPORTED_OPERATION);
    free(memory);
}

// The call fails because the system does not allow it.
#define FORBIDDEN(call) EXPECT(call, MPI_ERR_RMA_SHARED)

// A small put may wait for the flush, which then returns its error.
static int put_and_flush(const int64_t *value, int target, MPI_Aint at, MPI_Win win)
{
    int code = MPI_Put(value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win);
    return code == MPI_SUCCESS ? MPI_Win_flush(target, win) : code;
}

// All that this rank may not do any more to the memory of the next one.
static void all_forbidden(MPI_Win win, MPI_Aint at)
{
    enum { MANY = 3000 };
    static int64_t many[MANY];
    int next = (rank + 1) % size;
    int64_t value = 1, other = 2, result = 3;
    MPI_Datatype strided;
    OK(MPI_Type_vector(MANY / 2, 1, 2, MPI_INT64_T, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_Win_lock_all(0, win));
    FORBIDDEN(put_and_flush(&value, next, at, win));
    FORBIDDEN(MPI_Get(&value, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, win));
    FORBIDDEN(MPI_Put(many, 1, strided, next, at, 1, strided, win));
    FORBIDDEN(MPI_Get(many, 1, strided, next, at, 1, strided, win));
    FORBIDDEN(MPI_Accumulate(&value, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, MPI_SUM, win));
    FORBIDDEN(MPI_Accumulate(many, 1, strided, next, at, 1, strided, MPI_REPLACE, win));
    FORBIDDEN(MPI_Get_accumulate(&value, 1, MPI_INT64_T, &result, 1, MPI_INT64_T, next, at, 1,
                                 MPI_INT64_T, MPI_SUM, win));
    FORBIDDEN(MPI_Fetch_and_op(&value, &result, MPI_INT64_T, next, at, MPI_SUM, win));
    FORBIDDEN(MPI_Compare_and_swap(&value, &other, &result, MPI_INT64_T, next, at, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Type_free(&strided));
    CHECK(value == 1 && result == 3);
}

static void late(int fatal)
{
    enum { BYTES = 3000 * 8 };
    int64_t *memory = calloc(1, BYTES), *attached = calloc(1, BYTES), *allocated;
    MPI_Aint at, of_next;
    MPI_Comm later;
    MPI_Win over, dyn, own;
    OK(MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &over));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dyn));
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &own));
    OK(MPI_Win_set_errhandler(over, MPI_ERRORS_RETURN));
    OK(MPI_Win_set_errhandler(dyn, MPI_ERRORS_RETURN));
    use(over, 0, 8, &memory[1]);
    memset(allocated, 0, 64);
    OK(MPI_Win_attach(dyn, attached, BYTES));
    OK(MPI_Get_address(attached, &at));
    OK(MPI_Sendrecv(&at, 1, MPI_AINT, (rank + size - 1) % size, 0, &of_next, 1, MPI_AINT,
                    (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    filter();
    if (fatal)
        OK(MPI_Win_set_errhandler(over, MPI_ERRORS_ARE_FATAL));
    if (only_rank < 0 || rank == only_rank) {
        all_forbidden(over, 0);
        all_forbidden(dyn, of_next);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(memory[0] == 1000 + (rank + size - 1) % size && attached[0] == 0);
    // No lock was left behind: the owner takes the same ones, for its own memory and its table.
    int64_t one = 1, *more = zeros();
    OK(MPI_Win_lock_all(0, over));
    OK(MPI_Accumulate(&one, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, MPI_SUM, over));
    OK(MPI_Win_unlock_all(over));
    CHECK(memory[0] == 1001 + (rank + size - 1) % size);
    OK(MPI_Win_attach(dyn, more, 64));
    OK(MPI_Win_detach(dyn, more));
    OK(MPI_Win_detach(dyn, attached));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    use_and_free(own, allocated);
    OK(MPI_Win_free(&dyn));
    OK(MPI_Win_free(&over));
    own_transport();
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &later));
    created(later); // asks anew, and is delegated
    OK(MPI_Comm_free(&later));
    free(more);
    free(attached);
    free(memory);
}

// The rank in MPI_COMM_WORLD before MPI_Init, as the launchers tell it.
static int early_rank(void)
{
    const char *pmi = getenv("PMI_RANK"), *ompi = getenv("OMPI_COMM_WORLD_RANK");
    return atoi(pmi != NULL ? pmi : ompi != NULL ? ompi : "0");
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "delegated";
    only_rank = argc > 2 ? atoi(argv[2]) : -1;
    which = argc > 3 ? argv[3] : "both";
    if (strcmp(mode, "differing") == 0)
        setenv("FOMPI_FALLBACK", early_rank() == 1 ? "error" : "warn", 1);
    start(60, &argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int fatal = strcmp(mode, "fatal") == 0;
    if (fatal || strcmp(mode, "late") == 0) {
        late(fatal);
        return MPI_Finalize();
    }
    filter();
    for (int again = 0; again < 10; again++) {
        if (strcmp(mode, "delegated") == 0) {
            created(MPI_COMM_WORLD);
            dynamic();
        } else {
            refused();
        }
        own_transport();
    }
    return MPI_Finalize();
}
