/* Ways to tell a target that data are there by calls of the standard: a flag, a fence, and post,
 * start, complete, wait. Each time is half a ping-pong, as that of `send_recv` is for messages and
 * that of `notified_put` for notified operations. */
#include "bench.h"

#define WINDOW_BYTES (8 * MIB)
static const size_t FLAG_AT = WINDOW_BYTES - 64;
/* An MPI may need a call of the target to carry out a put, which a load is not. */
enum { LOOKS_BEFORE_A_PROBE = 16 };

static MPI_Group peer;
static unsigned char turn;

static void put(long bytes) {
    MPI_Put(local, (int)bytes, MPI_BYTE, peer_rank(), wide_at(peer_rank(), 0), (int)bytes, MPI_BYTE,
            wide.win);
}

/* Without the first flush the flag could overtake the data; without the second one an MPI may keep
 * the flag back. It is a byte, because the bytes of a larger number may change one by one (MPI-4.1
 * §12.7). */
static void raise_flag(long bytes) {
    put(bytes);
    MPI_Win_flush(peer_rank(), wide.win);
    MPI_Put(&turn, 1, MPI_BYTE, peer_rank(), wide_at(peer_rank(), FLAG_AT), 1, MPI_BYTE,
            wide.win);
    MPI_Win_flush(peer_rank(), wide.win);
}
static void wait_for_flag(void) {
    const volatile unsigned char *flag = (unsigned char *)wide.base + FLAG_AT;
    for (long looks = 1; *flag != turn; looks++) {
        int is_there;
        if (looks % LOOKS_BEFORE_A_PROBE == 0)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, job.comm, &is_there, MPI_STATUS_IGNORE);
        MPI_Win_sync(wide.win);
    }
    MPI_Win_sync(wide.win); /* the data are read after the flag */
}
static void by_flag(long bytes) {
    turn++;
    if (is_origin()) raise_flag(bytes), wait_for_flag();
    else if (is_target()) wait_for_flag(), raise_flag(bytes);
}

static void by_fence(long bytes) {
    if (is_origin()) put(bytes);
    MPI_Win_fence(0, wide.win);
    if (is_target()) put(bytes);
    MPI_Win_fence(0, wide.win);
}

/* Both are exposed before the first data leave, so that no start waits for a post of its round. */
static void epoch_to_peer(long bytes) {
    MPI_Win_start(peer, 0, wide.win);
    put(bytes);
    MPI_Win_complete(wide.win);
}
static void by_pscw(long bytes) {
    if (!is_origin() && !is_target()) return;
    MPI_Win_post(peer, 0, wide.win);
    if (is_origin()) epoch_to_peer(bytes);
    MPI_Win_wait(wide.win);
    if (is_target()) epoch_to_peer(bytes);
}

/* Each rank of the pair has a pattern of its own, and finds the other's in its window. */
static void prepare(long bytes) {
    MPI_Group all;
    int rank = peer_rank();
    turn = 0;
    MPI_Comm_group(job.comm, &all);
    MPI_Group_incl(all, 1, &rank, &peer);
    MPI_Group_free(&all);
    fill(local, (size_t)bytes, job.rank);
    fill(wide.base, (size_t)bytes + 1, -1);
    wide.base[FLAG_AT] = 0;
    MPI_Barrier(job.comm);
}
/* Once more, with data that no run before has brought. */
static int verify(Call *call, long bytes) {
    MPI_Barrier(job.comm);
    fill(local, (size_t)bytes, job.rank + 100);
    call(bytes);
    MPI_Group_free(&peer);
    int is_asked = is_origin() || is_target();
    return has(is_asked, wide.base, (size_t)bytes, peer_rank() + 100) &&
           (!is_asked || wide.base[bytes] == pattern((size_t)bytes, -1));
}
static int verify_flag(long bytes) {
    int is_right = verify(by_flag, bytes);
    MPI_Barrier(job.comm);
    return is_right;
}
static int verify_fence(long bytes) { return verify(by_fence, bytes); }
static int verify_pscw(long bytes) { return verify(by_pscw, bytes); }

#define ROW(way, what, scope)                                                                    \
    {                                                                                            \
        "one_way_" #way, "bytes", ALL_SIZES, "half a round trip of " what, scope, WINDOW_BYTES, 2,   \
            {ALL, by_##way, NULL, NULL, 0, 2}, prepare, verify_##way, NULL                    \
    }

const Measurement one_ways[] = {
    ROW(flag, "put, flush, a flag, flush, and polling it", IN_LOCK_ALL),
    ROW(fence, "put and fence", IN_FENCES),
    ROW(pscw, "post, start, put, complete, wait", NO_EPOCH),
    {0}};
