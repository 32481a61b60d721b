/* The same transfers and synchronizations by messages and collective calls. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT = 16, RATE = 1000, NEIGHBOURS_MAX = 64 };
static const size_t BYTES = (size_t)4 << 20;
static char *out, *in;

static void prepare(long value) {
    (void)value;
    if (!out) out = malloc(BYTES), in = malloc(BYTES);
    fill(out, BYTES, is_origin() ? 1 : 2);
    memset(in, 0, BYTES);
}
static int verify(long bytes) { return has(is_target(), in, (size_t)bytes, 1); }
static int verify_both(long bytes) {
    return verify(bytes) && has(is_origin(), in, (size_t)bytes, 2);
}

static void ping_pong(long bytes) {
    int peer = is_origin() ? job.target : 0;
    if (is_origin()) MPI_Send(out, (int)bytes, MPI_BYTE, peer, 1, job.comm);
    if (is_origin() || is_target())
        MPI_Recv(in, (int)bytes, MPI_BYTE, peer, 1, job.comm, MPI_STATUS_IGNORE);
    if (is_target()) MPI_Send(out, (int)bytes, MPI_BYTE, peer, 1, job.comm);
}

/* The receiver's requests and an empty answer at the end are in the time. */
static void many(long bytes, int count) {
    MPI_Request requests[RATE];
    if (!is_origin() && !is_target()) return;
    for (int k = 0; k < count; k++)
        if (is_origin())
            MPI_Isend(out, (int)bytes, MPI_BYTE, job.target, 1, job.comm, &requests[k]);
        else
            MPI_Irecv(in, (int)bytes, MPI_BYTE, 0, 1, job.comm, &requests[k]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    if (is_target()) MPI_Send(NULL, 0, MPI_BYTE, 0, 2, job.comm);
    if (is_origin())
        MPI_Recv(NULL, 0, MPI_BYTE, job.target, 2, job.comm, MPI_STATUS_IGNORE);
}
static void in_flight(long bytes) { many(bytes, IN_FLIGHT); }
static void rate(long bytes) { many(bytes, RATE); }

static void barrier(long value) { (void)value, MPI_Barrier(job.comm); }
static int verify_barrier(long value) {
    /* All ranks are in the sum. */
    int one = 1, sum = 0;
    (void)value;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, job.comm);
    return sum == job.ranks;
}

/* A byte to each of the k nearest ranks of the ring, and one from each opposite one: what
 * `pscw_put` does one-sided. */
static void ring(long neighbours) {
    MPI_Request requests[2 * NEIGHBOURS_MAX];
    for (long k = 0; k < neighbours; k++) {
        int distance = (int)(k / 2) + 1, offset = k % 2 ? -distance : distance;
        int to = (job.rank + offset + job.ranks) % job.ranks;
        int from = (job.rank - offset + job.ranks) % job.ranks;
        MPI_Irecv(in + k, 1, MPI_BYTE, from, (int)k, job.comm, &requests[2 * k]);
        MPI_Isend(out + k, 1, MPI_BYTE, to, (int)k, job.comm, &requests[2 * k + 1]);
    }
    MPI_Waitall(2 * (int)neighbours, requests, MPI_STATUSES_IGNORE);
}
static void ring_point(long neighbours) {
    static Series series;
    static const Timed timed = {ALL, ring, NULL, NULL, 0, 1};
    if (neighbours >= job.ranks || neighbours > NEIGHBOURS_MAX) return;
    prepare(neighbours);
    fill(out, BYTES, 2);
    time_series(&timed, neighbours, &series);
    report("ring_messages", "neighbours", neighbours, &series, has(1, in, (size_t)neighbours, 2));
}

#define ROW(name, sizes, what, call, operations, check)                                          \
    {                                                                                            \
        name, "bytes", sizes, what, NO_WINDOW, 0, 2, {ALL, call, NULL, NULL, 0, operations},     \
            prepare, check, NULL                                                                 \
    }

const Measurement messages[] = {
    ROW("send_recv", ALL_SIZES, "half a round trip of send and recv", ping_pong, 2, verify_both),
    ROW("send_bandwidth", ALL_SIZES, "one of 16 isends and irecvs before an answer", in_flight,
        IN_FLIGHT, verify),
    ROW("send_rate", RATE_SIZES, "one of 1,000 isends and irecvs before an answer", rate, RATE,
        verify),
    {"barrier", "ranks", NULL, "MPI_Barrier", NO_WINDOW, 0, 1, {ALL, barrier, NULL, NULL, 0, 1},
     NULL, verify_barrier, NULL},
    {"ring_messages", "neighbours", "1,2,4,8,16,32", "isend and irecv of a byte on a ring, waitall",
     NO_WINDOW, 0, 2, {0}, NULL, NULL, ring_point},
    {0}};
