// Random calls, right and wrong, with a fixed seed, on windows and by memory handles. Whatever is passed in:
// the call returns, right calls succeed and wrong ones fail where the standard says so, no byte outside of
// what right calls may write changes, and the window still works. usage: fuzz SEED CALLS

#include "robust.h"

#include "../../include/fompi_rma.h"

#pragma weak FOMPI_Mem_expose
#pragma weak FOMPI_Mem_pack
#pragma weak FOMPI_Mem_unpack
#pragma weak FOMPI_Mem_withdraw
#pragma weak FOMPI_Mem_put
#pragma weak FOMPI_Mem_get
#pragma weak FOMPI_Mem_accumulate
#pragma weak FOMPI_Mem_fetch_and_op
#pragma weak FOMPI_Mem_compare_and_swap
#pragma weak FOMPI_Xfer
#pragma weak FOMPI_Complete

enum { WORDS = 64, GUARD = 4096, BATCH = 250 };

static MPI_Win win, freed, other, dynamic;
static int64_t exposed[3 * WORDS]; // by handles: the middle third
static FOMPI_Mem mems[16], withdrawn[16]; // of all ranks
static char packed[FOMPI_MEM_BYTES];
static int64_t *base;
static unsigned char *guard; // a private buffer around the origin's data
static MPI_Datatype vector;
static MPI_Op user_op;
static uint64_t state;

static unsigned draw(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

// One of four times something wrong.
static int odd(void)
{
    return draw(4) == 0;
}

static void sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int64_t *)inout)[i] += ((int64_t *)in)[i];
}

// An argument, and in `bad` whether it is wrong.
static int a_rank(int *bad)
{
    const int wrong_ranks[] = {-7, size, size + 1, 1 << 20, -2147483647 - 1, 2147483647};
    if (!odd())
        return draw(9) ? (int)draw((unsigned)size) : MPI_PROC_NULL;
    *bad = 1;
    return wrong_ranks[draw(6)];
}

static MPI_Aint a_disp(int *bad)
{
    const MPI_Aint wrong_disps[] = {-1, WORDS, WORDS - 1 + 3, (MPI_Aint)1 << 40,
                                    ((MPI_Aint)1 << 61) + 1, INT64_MAX, INT64_MIN};
    if (!odd())
        return (MPI_Aint)draw(WORDS / 2);
    *bad = 1;
    return wrong_disps[draw(7)];
}

static int a_count(int *bad)
{
    const int wrong_counts[] = {-1, -2147483647 - 1, WORDS + 1, 2147483647, 1 << 28};
    if (!odd())
        return (int)draw(WORDS / 4);
    *bad = 1;
    return wrong_counts[draw(5)];
}

static MPI_Datatype a_type(int *bad)
{
    if (!odd())
        return MPI_INT64_T;
    *bad = 1;
    return MPI_DATATYPE_NULL;
}

static MPI_Op an_op(int *bad)
{
    const MPI_Op right[] = {MPI_SUM, MPI_MIN, MPI_BXOR, MPI_REPLACE, MPI_NO_OP, MPI_PROD};
    if (!odd())
        return right[draw(6)];
    *bad = 1;
    return draw(2) ? user_op : MPI_OP_NULL;
}

static MPI_Win a_window(int *bad)
{
    if (draw(8))
        return win;
    *bad = 1;
    switch (draw(4)) {
    case 0: return MPI_WIN_NULL;
    case 1: return MPI_Win_f2c((MPI_Fint)(0x20000001 | (draw(1 << 25) << 1)) | (250 << 17));
    case 2: return MPI_Win_f2c(MPI_Win_c2f(win) + (1 << 17)); // another generation
    default: return freed;
    }
}

static void *a_buffer(int count, int *bad)
{
    if (!odd() || count == 0)
        return guard + GUARD;
    *bad = 1;
    return NULL;
}

// A wrong call must fail; a right one may fail only for the epoch (MPI_ERR_RMA_SYNC) if `closed`.
static void judge(const char *call, int code, int bad, int closed, int nothing)
{
    int class = class_of(code);
    if (bad && !nothing && class == MPI_SUCCESS)
        wrong(0, "wrong %s succeeded", call);
    if (!bad && !closed && !nothing && class != MPI_SUCCESS)
        wrong(0, "right %s: class %d", call, class);
}

static void transfer(int closed)
{
    int bad = 0, far = 0;
    int target = a_rank(&bad);
    MPI_Aint disp = a_disp(&bad);
    int count = a_count(&bad);
    MPI_Datatype type = a_type(&bad);
    MPI_Win w = a_window(&bad);
    void *origin = a_buffer(count, &bad), *result = guard + GUARD;
    MPI_Op op = an_op(&far);
    // Nothing moves to MPI_PROC_NULL or with count 0: what is wrong then may pass unseen.
    int nothing = target == MPI_PROC_NULL || count == 0;
    MPI_Request request = MPI_REQUEST_NULL;
    switch (draw(9)) {
    case 0:
        judge("MPI_Put", MPI_Put(origin, count, type, target, disp, count, type, w), bad, closed,
              nothing);
        break;
    case 1:
        judge("MPI_Get", MPI_Get(origin, count, type, target, disp, count, type, w), bad, closed,
              nothing);
        break;
    case 2: // MPI_NO_OP is not for this call
        far |= op == MPI_NO_OP;
        judge("MPI_Accumulate", MPI_Accumulate(origin, count, type, target, disp, count, type, op,
              w), bad || far, closed, nothing);
        break;
    case 3:
        if (op == MPI_NO_OP)
            origin = guard + GUARD, bad = 1, nothing = 1;
        judge("MPI_Get_accumulate", MPI_Get_accumulate(origin, count, type, result, count, type,
              target, disp, count, type, op, w), bad || far, closed, nothing);
        break;
    case 4:
        if (op == MPI_NO_OP || origin == NULL)
            origin = guard + GUARD, bad = 1, nothing = 1;
        judge("MPI_Fetch_and_op", MPI_Fetch_and_op(origin, result, type, target, disp, op, w),
              bad || far, closed, nothing || bad);
        break;
    case 5:
        judge("MPI_Compare_and_swap", MPI_Compare_and_swap(origin, guard + GUARD, result, type,
              target, disp, w), bad, closed, nothing || bad);
        break;
    case 6:
        judge("MPI_Rput", MPI_Rput(origin, count, type, target, disp, count, type, w, &request),
              bad, closed, nothing);
        break;
    case 7: // lower bounds and holes of a derived type count too
        judge("MPI_Put, vector", MPI_Put(guard + GUARD, 1, vector, target, disp + WORDS - 4, 1,
              vector, w), 1, closed, nothing);
        break;
    default: // more at the origin than fits in the target's count
        judge("MPI_Put, truncated", MPI_Put(guard + GUARD, 8, MPI_INT64_T, target, disp, 4,
              MPI_INT64_T, w), 1, closed, target == MPI_PROC_NULL);
    }
    if (request != MPI_REQUEST_NULL)
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static FOMPI_Mem a_handle(int *bad)
{
    const unsigned from = draw((unsigned)size);
    if (!odd())
        return mems[from];
    *bad = 1;
    return draw(2) ? withdrawn[from] : FOMPI_MEM_NULL;
}

static MPI_Aint a_disp_in_bytes(int count, int *bad)
{
    const MPI_Aint wrong_disps[] = {-1, 8 * WORDS, 8 * WORDS - 7, 8 * (WORDS - (MPI_Aint)count) + 1,
                                    (MPI_Aint)1 << 40, INT64_MAX, INT64_MIN};
    if (!odd())
        return 8 * (MPI_Aint)draw(WORDS / 2) + 8;
    *bad = 1;
    return wrong_disps[draw(7)];
}

static int the_attributes(int is_transfer, int *bad)
{
    if (!odd())
        return (int)draw(16) & ~(is_transfer ? 0 : FOMPI_ATOMIC);
    *bad = 1;
    return (const int[]){-1, 32, 64, 256, 1 << 30}[draw(5)];
}

// A packed handle with another bit, or with random bytes at its end.
static void forged(void)
{
    char changed[FOMPI_MEM_BYTES];
    FOMPI_Mem mem;
    memcpy(changed, packed, sizeof changed);
    changed[draw(FOMPI_MEM_BYTES)] ^= (char)(1 << draw(8));
    for (unsigned i = draw(2) ? draw(FOMPI_MEM_BYTES) : FOMPI_MEM_BYTES; i < FOMPI_MEM_BYTES; i++)
        changed[i] = (char)draw(256);
    EXPECT(FOMPI_Mem_unpack(changed, dynamic, &mem), MPI_ERR_ARG);
}

// A transfer by a handle, which needs no epoch. Wrong ones may fail as late as they are completed.
static void by_handle(void)
{
    const unsigned kind = draw(6);
    int bad = 0, code, count = kind == 3 || kind == 4 ? 1 : a_count(&bad), wrong_op = 0;
    const MPI_Aint disp = a_disp_in_bytes(count, &bad);
    const FOMPI_Mem mem = a_handle(&bad);
    MPI_Datatype type = a_type(&bad);
    const MPI_Op op = an_op(&wrong_op);
    const int attributes = the_attributes(kind < 2, &bad);
    void *origin = a_buffer(count, &bad), *result = guard + GUARD;
    wrong_op |= op == MPI_NO_OP && kind == 2;
    switch (kind) {
    case 0: code = FOMPI_Mem_put(origin, count, type, mem, disp, attributes); break;
    case 1: code = FOMPI_Mem_get(origin, count, type, mem, disp, attributes); break;
    case 2:
        code = FOMPI_Mem_accumulate(origin, count, type, mem, disp, op, attributes), bad |= wrong_op;
        break;
    case 3:
        code = FOMPI_Mem_fetch_and_op(guard + GUARD, result, type, mem, disp, op, attributes);
        bad |= wrong_op, bad = origin ? bad : 2;
        break;
    case 4:
        code = FOMPI_Mem_compare_and_swap(guard + GUARD, guard + GUARD, result, type, mem, disp, attributes);
        bad = origin ? bad : 2;
        break;
    default: {
        fompi_buffers buffers = {origin, count, type, draw(2) ? result : NULL, count, type, guard + GUARD};
        code = FOMPI_Xfer((int)draw(9) - 2, op, draw(9) ? &buffers : NULL, mem, disp, count, type, attributes, NULL);
        bad = 2;
    }
    }
    if (code == MPI_SUCCESS)
        code = FOMPI_Complete(FOMPI_ALL_RANKS, dynamic);
    if (bad != 2) // else it is as it may be
        judge("transfer by a handle", code, bad, 0, count == 0);
}

// Handles of the same memory twice. The first ones are withdrawn.
static void prepare_handles(void)
{
    char all[16][FOMPI_MEM_BYTES];
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    OK(MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN));
    for (int turn = 0; turn < 2; turn++) {
        FOMPI_Mem own;
        OK(FOMPI_Mem_expose(exposed + WORDS, 8 * WORDS, MPI_INFO_NULL, dynamic, &own));
        OK(FOMPI_Mem_pack(own, packed));
        MPI_Allgather(packed, FOMPI_MEM_BYTES, MPI_BYTE, all, FOMPI_MEM_BYTES, MPI_BYTE, MPI_COMM_WORLD);
        for (int i = 0; i < size; i++)
            OK(FOMPI_Mem_unpack(all[i], dynamic, turn ? &mems[i] : &withdrawn[i]));
        MPI_Barrier(MPI_COMM_WORLD);
        if (turn == 0)
            OK(FOMPI_Mem_withdraw(&own));
    }
}

// Synchronisation that waits for nobody, in any epoch: it answers, and no check is made of what.
static void synchronise(void)
{
    int bad = 0, flag;
    int target = a_rank(&bad);
    MPI_Win w = a_window(&bad);
    if (w == win && bad == 0 && target != MPI_PROC_NULL)
        w = freed; // locks of `win` are taken by `epoch` alone
    switch (draw(12)) {
    case 0:
        MPI_Win_lock(draw(3) ? MPI_LOCK_SHARED : 12345, target, draw(2) ? 0 : 1 << 20, w);
        break;
    case 1: MPI_Win_unlock(target, w); break;
    case 2: MPI_Win_flush(target, win); break;
    case 3: MPI_Win_flush_local(target, win); break;
    case 4: MPI_Win_flush_all(w); break;
    case 5: MPI_Win_complete(win); break;
    case 6: MPI_Win_wait(win); break;
    case 7: MPI_Win_test(win, &flag); break;
    case 8: MPI_Win_post(MPI_GROUP_NULL, 0, win); break;
    case 9: MPI_Win_start(MPI_GROUP_NULL, 0, win); break;
    case 10: MPI_Win_fence(1 << 22, win); break;
    default: MPI_Win_sync(w);
    }
}

// Opens a passive epoch, or a wrong one inside of it.
static int epoch(int open)
{
    if (open) {
        EXPECT(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
        EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
        OK(MPI_Win_unlock_all(win));
        EXPECT(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
        return 0;
    }
    EXPECT(MPI_Win_lock_all(1 << 20, win), MPI_ERR_ASSERT);
    OK(MPI_Win_lock_all(0, win));
    return 1;
}

static void check_guards(void)
{
    for (int i = 0; i < GUARD; i++)
        CHECK(guard[i] == 0xa5 && guard[GUARD + 8 * WORDS + i] == 0xa5);
    for (int i = WORDS; i < 2 * WORDS; i++) // the second window next to it, never a target
        CHECK(base[i] == 0x5a5a5a5a);
    for (int i = 0; i < WORDS; i++) // on both sides of what handles reach
        CHECK(exposed[i] == 0 && exposed[2 * WORDS + i] == 0);
}

// All meet, and a value goes round.
static void works(int64_t value)
{
    int64_t got = 0;
    int next = (rank + 1) % size;
    MPI_Barrier(MPI_COMM_WORLD);
    check_guards();
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, other));
    OK(MPI_Put(&value, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, other));
    OK(MPI_Win_flush(next, other));
    OK(MPI_Get(&got, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, other));
    OK(MPI_Win_unlock(next, other));
    CHECK(got == value);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, next, WORDS - 1, 1, MPI_INT64_T, win));
    OK(MPI_Win_fence(0, win));
    CHECK(base[WORDS - 1] == value);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

static void prepare(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Op_create(sum, 1, &user_op);
    MPI_Type_vector(3, 1, 4, MPI_INT64_T, &vector);
    MPI_Type_commit(&vector);
    guard = malloc(2 * GUARD + 8 * WORDS);
    memset(guard, 0xa5, 2 * GUARD + 8 * WORDS);
    // What is exposed is shorter than what is there: a page has room for a guard after it.
    OK(MPI_Win_allocate(8 * WORDS, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    memset(base, 0, 8 * WORDS);
    for (int i = WORDS; i < 2 * WORDS; i++)
        base[i] = 0x5a5a5a5a;
    window_of(WORDS, &other);
    window_of(WORDS, &freed);
    MPI_Win copy = freed;
    OK(MPI_Win_free(&copy));
    prepare_handles();
}

int main(int argc, char **argv)
{
    start(60, &argc, &argv);
    int calls = argc > 2 ? atoi(argv[2]) : 20000, open = 0;
    state = 0x9e3779b97f4a7c15ULL * (uint64_t)(argc > 1 ? atoi(argv[1]) : 1) + (uint64_t)rank;
    prepare();
    for (int i = 0; i < calls; i++) {
        if (draw(20) == 0)
            open = epoch(open);
        if (draw(5) == 0)
            synchronise();
        else if (draw(3) == 0)
            draw(10) ? by_handle() : forged();
        else
            transfer(!open);
        if (i % BATCH == BATCH - 1) {
            if (open)
                open = epoch(open);
            works(i);
        }
    }
    MPI_Type_free(&vector);
    MPI_Op_free(&user_op);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_free(&other));
    OK(MPI_Win_free(&dynamic));
    free(guard);
    return MPI_Finalize();
}
