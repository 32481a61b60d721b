// Decides when requests take effect and when they complete: at a pseudo-random later call of this
// process, by its thread after one to two milliseconds at the latest. Each queue pair's WRITEs take
// effect in order, and nothing overtakes them. What stands after a READ or an atomic operation may
// take effect before it, unless it carries the fence. A setting lets more be overtaken. Completions
// come in order.

#include "adapter.h"
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { TICK_NS = 1000000, STEPS_PER_CALL = 16, OVERTAKEN = 16 };

pthread_mutex_t engine = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_work = PTHREAD_COND_INITIALIZER;
static struct queue_pair *queues;
static int thread_state; // 0: none yet, 1: runs, 2: sleeps until something is posted
static uint64_t executed;

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// A number below `of`, pseudo-random; called after `engine`.
unsigned chance(unsigned of)
{
    static uint64_t state;
    if (state == 0)
        state = (settings.seed * PROCESSES + my_process) * 0x9e3779b97f4a7c15;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)((state >> 24) % of);
}

static struct request *request_at(const struct queue_pair *qp, uint64_t number)
{
    return &qp->ring[number % qp->init.cap.max_send_wr];
}

static int opcode_of(const struct request *request)
{
    switch (request->opcode) {
    case IBV_WR_RDMA_READ: return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return IBV_WC_FETCH_ADD;
    case IBV_WR_ATOMIC_CMP_AND_SWP: return IBV_WC_COMP_SWAP;
    default: return IBV_WC_RDMA_WRITE;
    }
}

// Takes the oldest request off the queue; tells of it if it is signalled or has failed.
static void complete(struct queue_pair *qp, int status)
{
    struct completion_queue *cq = (struct completion_queue *)qp->base.send_cq;
    const struct request *request = request_at(qp, qp->finished);
    uint64_t number = qp->finished++;
    if (status == IBV_WC_SUCCESS && !(request->flags & IBV_SEND_SIGNALED))
        return;
    if (cq->pushed - cq->polled == (uint64_t)cq->base.cqe) {
        fprintf(stderr, "adapter: a completion queue of %d entries is overrun\n", cq->base.cqe);
        abort();
    }
    struct completion *completion = &cq->ring[cq->pushed++ % (uint64_t)cq->base.cqe];
    memset(completion, 0, sizeof *completion);
    completion->wc.wr_id = request->wr_id;
    completion->wc.status = (enum ibv_wc_status)status;
    completion->wc.qp_num = qp->base.qp_num;
    if (status == IBV_WC_SUCCESS) {
        completion->wc.opcode = (enum ibv_wc_opcode)opcode_of(request);
        completion->wc.byte_len = request->bytes;
    }
    completion->qp = qp;
    completion->number = number;
    if (cq->is_armed && cq->base.channel != NULL) {
        cq->is_armed = 0;
        struct ibv_cq *event = &cq->base;
        if (write(cq->base.channel->refcnt, &event, sizeof event) != sizeof event)
            abort();
    }
}

static void complete_done(struct queue_pair *qp)
{
    while (qp->finished < qp->posted && request_at(qp, qp->finished)->is_done)
        complete(qp, IBV_WC_SUCCESS);
}

void flush_queue(struct queue_pair *qp)
{
    while (qp->finished < qp->posted)
        complete(qp, IBV_WC_WR_FLUSH_ERR);
}

static void fail(struct queue_pair *qp, int status)
{
    qp->base.state = IBV_QPS_ERR;
    __atomic_store_n(&qp->entry->state, IBV_QPS_ERR, __ATOMIC_RELEASE);
    complete_done(qp);
    complete(qp, status);
    flush_queue(qp);
}

// Whether a request may take effect before an earlier one.
static int may_overtake(const struct request *request, const struct request *earlier)
{
    int reads = request->opcode == IBV_WR_RDMA_READ;
    int behind_read = earlier->opcode == IBV_WR_RDMA_READ;
    switch (settings.order) {
    case ORDER_NONE: return 1;
    case ORDER_WAW: return reads || behind_read;
    default:
        if (behind_read)
            return !reads;
        return earlier->opcode != IBV_WR_RDMA_WRITE && settings.overtake_atomics;
    }
}

// The number of a request that may take effect now; `posted` if none may. `in_turn` asks for the
// oldest.
static uint64_t choose(struct queue_pair *qp, int in_turn)
{
    const struct request *passed[OVERTAKEN];
    unsigned count = 0, most = qp->attr.max_rd_atomic;
    if (most > OVERTAKEN || settings.order != ORDER_VERBS)
        most = OVERTAKEN;
    if (qp->undone < qp->finished)
        qp->undone = qp->finished;
    while (qp->undone < qp->posted && request_at(qp, qp->undone)->is_done)
        qp->undone++;
    for (uint64_t number = qp->undone; number < qp->posted; number++) {
        const struct request *request = request_at(qp, number);
        if (request->is_done)
            continue;
        if (count > 0 && (request->flags & IBV_SEND_FENCE))
            break;
        unsigned ahead = 0;
        while (ahead < count && may_overtake(request, passed[ahead]))
            ahead++;
        if (ahead == count && (in_turn || chance(2) == 0))
            return number;
        passed[count] = request;
        if (++count == most)
            break;
    }
    return qp->posted;
}

// Whether the other end has put the queue pair into the error state.
static int was_refused(struct queue_pair *qp)
{
    if (__atomic_load_n(&qp->entry->state, __ATOMIC_ACQUIRE) != IBV_QPS_ERR)
        return 0;
    qp->base.state = IBV_QPS_ERR;
    flush_queue(qp);
    return 1;
}

// Whether the device has failed: nothing is done any more, and an event says so, once.
static int has_failed(const struct queue_pair *qp)
{
    static int is_told;
    if (settings.fatal_after == 0 || executed < settings.fatal_after)
        return 0;
    if (!is_told)
        is_told = write(qp->base.context->cmd_fd, "f", 1) == 1;
    return 1;
}

// Executes one request; returns whether one was done.
static int step(struct queue_pair *qp, int in_turn)
{
    if (was_refused(qp) || has_failed(qp))
        return 0;
    uint64_t number = choose(qp, in_turn);
    if (number == qp->posted)
        return 0;
    struct request *request = request_at(qp, number);
    int is_cut = settings.cut_after != 0 && executed >= settings.cut_after;
    int status = is_cut ? UNREACHABLE : execute(qp, request);
    if (status == IBV_WC_SUCCESS) {
        executed++;
        qp->stalled_since = 0;
        request->is_done = 1;
        return 1;
    }
    // Errors are reported for the oldest request; a later one is reported in its turn.
    if (number != choose(qp, 1))
        return 0;
    if (status == UNREACHABLE) {
        uint64_t now = now_ns();
        if (qp->stalled_since == 0)
            qp->stalled_since = now;
        if (now - qp->stalled_since < settings.retry_ns)
            return 0;
        status = IBV_WC_RETRY_EXC_ERR;
    }
    fail(qp, status);
    return 0;
}

static int is_pending(const struct queue_pair *qp)
{
    return qp->finished < qp->posted;
}

static void stir(struct queue_pair *qp)
{
    for (unsigned tries = STEPS_PER_CALL; tries > 0 && is_pending(qp); tries--)
        if (settings.prompt && !step(qp, 1))
            break;
        else if (!settings.prompt && chance(8) != 0)
            step(qp, 0);
}

// Requests that the last check found take effect now. Returns whether to check again.
static int check(void)
{
    int again = 0;
    for (struct queue_pair *qp = queues; qp != NULL; qp = qp->next) {
        while (is_pending(qp)) {
            uint64_t oldest = choose(qp, 1);
            if (oldest < qp->posted && (oldest >= qp->seen || !step(qp, 1)))
                break;
            complete_done(qp);
        }
        complete_done(qp);
        qp->seen = qp->posted;
        again |= is_pending(qp);
    }
    return again;
}

static void *thread(void *unused)
{
    const struct timespec tick = {0, TICK_NS};
    pthread_mutex_lock(&engine);
    for (;;) {
        int again = check();
        if (!again) {
            thread_state = 2;
            while (thread_state == 2)
                pthread_cond_wait(&is_work, &engine);
        }
        pthread_mutex_unlock(&engine);
        nanosleep(&tick, NULL);
        pthread_mutex_lock(&engine);
    }
    return unused;
}

// Threads of the adapter take no signals of the program.
static void start_thread(void)
{
    pthread_t started;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&started, NULL, thread, NULL) != 0)
        abort();
    pthread_detach(started);
    start_agent();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// Called after `engine`, as the others: something was posted.
void posted(struct queue_pair *qp)
{
    if (qp->base.state == IBV_QPS_ERR)
        flush_queue(qp);
    else if (settings.prompt)
        do {
            stir(qp);
            complete_done(qp);
        } while (is_pending(qp) && qp->stalled_since == 0 && qp->base.state == IBV_QPS_RTS);
    else if (chance(2) == 0)
        stir(qp);
    if (thread_state == 2 && is_pending(qp)) {
        thread_state = 1;
        pthread_cond_signal(&is_work);
    }
}

void add_queue(struct queue_pair *qp)
{
    qp->next = queues;
    queues = qp;
    if (thread_state == 0) {
        thread_state = 1;
        start_thread();
    }
}

void forget_queue(struct queue_pair *qp)
{
    struct completion_queue *cq = (struct completion_queue *)qp->base.send_cq;
    struct queue_pair **link = &queues;
    while (*link != qp)
        link = &(*link)->next;
    *link = qp->next;
    // Its completions go with it.
    uint64_t kept = cq->polled;
    for (uint64_t i = cq->polled; i < cq->pushed; i++)
        if (cq->ring[i % (uint64_t)cq->base.cqe].qp != qp)
            cq->ring[kept++ % (uint64_t)cq->base.cqe] = cq->ring[i % (uint64_t)cq->base.cqe];
    cq->pushed = kept;
}

int poll_cq(struct ibv_cq *base, int entries, struct ibv_wc *wc)
{
    struct completion_queue *cq = (struct completion_queue *)base;
    int count = 0;
    pthread_mutex_lock(&engine);
    for (struct queue_pair *qp = queues; qp != NULL; qp = qp->next)
        if (qp->base.send_cq == base && is_pending(qp)) {
            stir(qp);
            if (settings.prompt || chance(4) != 0)
                complete_done(qp);
        }
    while (count < entries && cq->polled < cq->pushed) {
        const struct completion *completion = &cq->ring[cq->polled++ % (uint64_t)base->cqe];
        wc[count++] = completion->wc;
        // Its place in the send queue is free now, and so are those before it.
        completion->qp->retired = completion->number + 1;
    }
    pthread_mutex_unlock(&engine);
    return count;
}

int arm_cq(struct ibv_cq *base, int solicited_only)
{
    (void)solicited_only;
    pthread_mutex_lock(&engine);
    ((struct completion_queue *)base)->is_armed = 1;
    pthread_mutex_unlock(&engine);
    return 0;
}
