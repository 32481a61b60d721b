// Executes a request: checks both ends, then moves the bytes with process_vm_writev and _readv, or
// by load and store within a process. Atomic operations exclude each other, but not the CPU's,
// unless ADAPTER_ATOMIC=glob says so: then an agent, a thread of the target, executes them.

#include "adapter.h"
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 256 << 10, AGENT_WAIT_NS = 10000000 };

static long futex(uint32_t *word, int what, uint32_t value, long wait_ns)
{
    struct timespec wait = {0, wait_ns};
    return syscall(SYS_futex, word, what, value, wait_ns != 0 ? &wait : NULL, NULL, 0);
}

// A copy that moves aligned words whole.
static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes == 8 && (uintptr_t)to % 8 == 0) {
        uint64_t word;
        memcpy(&word, from, 8);
        __atomic_store_n((uint64_t *)to, word, __ATOMIC_RELEASE);
    } else {
        memcpy(to, from, bytes);
    }
}

// Whether a process is there; what has died but was not waited for is not.
static int is_alive(const struct process_entry *process)
{
    char byte;
    struct iovec local = {&byte, 1}, remote = {process->pulse, 1};
    return process->pid == getpid() ||
           process_vm_readv(process->pid, &local, 1, &remote, 1, 0) == 1;
}

// Moves bytes between this process and another one, or itself. Returns a completion's status.
static int move(pid_t pid, void *here, uint64_t there, size_t bytes, int is_write)
{
    if (pid == getpid()) {
        copy(is_write ? (void *)there : here, is_write ? here : (void *)there, bytes);
        return IBV_WC_SUCCESS;
    }
    while (bytes > 0) {
        struct iovec local = {here, bytes}, remote = {(void *)there, bytes};
        ssize_t moved = is_write ? process_vm_writev(pid, &local, 1, &remote, 1, 0)
                                 : process_vm_readv(pid, &local, 1, &remote, 1, 0);
        if (moved <= 0) {
            if (errno == ESRCH)
                return UNREACHABLE;
            fprintf(stderr, "adapter: process_vm_%s, %zu bytes at %#lx of process %d: %s\n",
                    is_write ? "writev" : "readv", bytes, (unsigned long)there, (int)pid,
                    strerror(errno));
            return errno == EFAULT ? IBV_WC_REM_OP_ERR : IBV_WC_FATAL_ERR;
        }
        here = (char *)here + moved, there += (size_t)moved, bytes -= (size_t)moved;
    }
    return IBV_WC_SUCCESS;
}

// A WRITE of one message guarantees nothing about the order of its bytes, not even of the eight of
// a word; only what comes after it sees all of them.
static int write_somehow(pid_t pid, char *here, uint64_t there, size_t bytes)
{
    if (settings.whole || bytes < 2 || chance(8) != 0)
        return move(pid, here, there, bytes, 1);
    size_t first = 1 + chance((unsigned)bytes - 1);
    int last_first = chance(2) == 0, status = IBV_WC_SUCCESS;
    for (int part = 0; part < 2 && status == IBV_WC_SUCCESS; part++) {
        if (part == last_first)
            status = move(pid, here, there, first, 1);
        else
            status = move(pid, here + first, there + first, bytes - first, 1);
        if (part == 0 && chance(2) == 0)
            sched_yield();
    }
    return status;
}

static uint64_t result_of(const struct request *request, uint64_t before)
{
    if (request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        return before + request->compare_add;
    return before == request->compare_add ? request->swap : before;
}

// The adapter's own way: a load and a store, which another adapter's operation does not come
// between, and the CPU's does.
static int change_word(pid_t pid, uint64_t at, const struct request *request, uint64_t *before)
{
    lock(&registry->atomics);
    int status = move(pid, before, at, 8, 0);
    if (status == IBV_WC_SUCCESS) {
        uint64_t after = result_of(request, *before);
        if (chance(16) == 0)
            sched_yield();
        if (request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || after != *before)
            status = move(pid, &after, at, 8, 1);
    }
    pthread_mutex_unlock(&registry->atomics);
    return status;
}

static uint64_t change_by_cpu(int opcode, uint64_t *at, uint64_t compare_add, uint64_t swap)
{
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        return __atomic_fetch_add(at, compare_add, __ATOMIC_SEQ_CST);
    __atomic_compare_exchange_n(at, &compare_add, swap, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return compare_add;
}

static void *agent(void *unused)
{
    struct errand *errand = &registry->processes[my_process - 1].errand;
    for (;;) {
        uint32_t state = __atomic_load_n(&errand->state, __ATOMIC_ACQUIRE);
        if (state == ERRAND_ASKED) {
            errand->answer = change_by_cpu((int)errand->opcode, (uint64_t *)errand->address,
                                           errand->compare_add, errand->swap);
            __atomic_store_n(&errand->state, ERRAND_DONE, __ATOMIC_RELEASE);
            futex(&errand->state, FUTEX_WAKE, 1, 0);
        } else {
            futex(&errand->state, FUTEX_WAIT, state, 0);
        }
    }
    return unused;
}

void start_agent(void)
{
    pthread_t thread;
    if (settings.glob && pthread_create(&thread, NULL, agent, NULL) == 0)
        pthread_detach(thread);
}

// Waits until the agent has done what it was asked for.
static int await_agent(struct process_entry *target)
{
    struct errand *errand = &target->errand;
    uint32_t state;
    while ((state = __atomic_load_n(&errand->state, __ATOMIC_ACQUIRE)) == ERRAND_ASKED) {
        futex(&errand->state, FUTEX_WAIT, state, AGENT_WAIT_NS);
        if (!is_alive(target))
            return UNREACHABLE;
    }
    return IBV_WC_SUCCESS;
}

static int ask_agent(struct process_entry *target, uint64_t at, const struct request *request,
                     uint64_t *before)
{
    struct errand *errand = &target->errand;
    lock(&errand->mailbox);
    // Somebody who was killed may have asked for something that is still under way.
    int status = await_agent(target);
    if (status == IBV_WC_SUCCESS) {
        errand->opcode = (uint32_t)request->opcode;
        errand->address = at;
        errand->compare_add = request->compare_add;
        errand->swap = request->swap;
        __atomic_store_n(&errand->state, ERRAND_ASKED, __ATOMIC_RELEASE);
        futex(&errand->state, FUTEX_WAKE, INT32_MAX, 0);
        status = await_agent(target);
        *before = errand->answer;
    }
    pthread_mutex_unlock(&errand->mailbox);
    return status;
}

static int atomic(struct process_entry *target, uint64_t at, struct request *request)
{
    uint64_t before = 0;
    int status = IBV_WC_SUCCESS;
    if (!settings.glob)
        status = change_word(target->pid, at, request, &before);
    else if (target->pid != getpid())
        status = ask_agent(target, at, request, &before);
    else
        before = change_by_cpu(request->opcode, (uint64_t *)at, request->compare_add,
                               request->swap);
    if (status == IBV_WC_SUCCESS)
        copy((void *)request->sge[0].addr, &before, 8);
    return status;
}

static int transfer(pid_t pid, uint64_t at, struct request *request)
{
    int is_write = request->opcode == IBV_WR_RDMA_WRITE, status = IBV_WC_SUCCESS;
    if (request->flags & IBV_SEND_INLINE)
        return write_somehow(pid, (char *)request->inlined, at, request->bytes);
    for (uint32_t i = 0; i < request->sges; i++) {
        char *here = (char *)(uintptr_t)request->sge[i].addr;
        for (uint32_t left = request->sge[i].length; left > 0;) {
            uint32_t bytes = left < CHUNK_BYTES ? left : CHUNK_BYTES;
            status = is_write ? write_somehow(pid, here, at, bytes) : move(pid, here, at, bytes, 0);
            if (status != IBV_WC_SUCCESS)
                return status;
            here += bytes, at += bytes, left -= bytes;
        }
    }
    return status;
}

static int is_within(const struct key_entry *key, uint64_t from, uint64_t bytes)
{
    return from >= key->iova && bytes <= key->bytes && from - key->iova <= key->bytes - bytes;
}

// The target of a queue pair, if it is there and expects requests of this one.
static struct qp_entry *target_of(const struct queue_pair *qp)
{
    struct qp_entry *target = qp_of(qp->attr.dest_qp_num);
    if (target == NULL || qp->is_unreachable)
        return NULL;
    uint32_t state = __atomic_load_n(&target->state, __ATOMIC_ACQUIRE);
    if ((state != IBV_QPS_RTR && state != IBV_QPS_RTS) ||
        target->destination != qp->base.qp_num || target->rq_psn != qp->entry->sq_psn)
        return NULL;
    return target;
}

static int local_status(const struct queue_pair *qp, const struct request *request)
{
    int is_written = request->opcode != IBV_WR_RDMA_WRITE;
    if (request->bytes > settings.message_bytes_max)
        return IBV_WC_LOC_LEN_ERR;
    if (is_written && qp->attr.max_rd_atomic == 0)
        return IBV_WC_LOC_QP_OP_ERR;
    for (uint32_t i = 0; !(request->flags & IBV_SEND_INLINE) && i < request->sges; i++) {
        const struct ibv_sge *sge = &request->sge[i];
        const struct key_entry *key = key_of(sge->lkey);
        if (sge->length != 0 &&
            (key == NULL || key->process != my_process || key->pd != qp->entry->pd ||
             !is_within(key, sge->addr, sge->length) ||
             (is_written && !(key->access & IBV_ACCESS_LOCAL_WRITE))))
            return IBV_WC_LOC_PROT_ERR;
    }
    return IBV_WC_SUCCESS;
}

static uint32_t right_for(int opcode)
{
    return opcode == IBV_WR_RDMA_WRITE ? IBV_ACCESS_REMOTE_WRITE
           : opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_ATOMIC;
}

// After the key's guard: what it opens, or an error.
static int under_key(struct qp_entry *target, struct key_entry *key, struct request *request)
{
    uint32_t right = right_for(request->opcode);
    if (key_of(request->rkey & ~(uint32_t)RKEY) != key || key->process != target->process ||
        key->pd != target->pd || !(key->access & right) || !(target->access & right) ||
        !is_within(key, request->remote, request->bytes))
        return IBV_WC_REM_ACCESS_ERR;
    uint64_t at = key->address + (request->remote - key->iova);
    struct process_entry *process = &registry->processes[target->process - 1];
    if (right != IBV_ACCESS_REMOTE_ATOMIC)
        return transfer(process->pid, at, request);
    return at % 8 == 0 ? atomic(process, at, request) : IBV_WC_REM_INV_REQ_ERR;
}

// Returns a completion's status, or UNREACHABLE.
int execute(struct queue_pair *qp, struct request *request)
{
    int status = local_status(qp, request);
    if (status != IBV_WC_SUCCESS)
        return status;
    struct qp_entry *target = target_of(qp);
    if (target == NULL)
        return UNREACHABLE;
    if (request->opcode != IBV_WR_RDMA_WRITE &&
        qp->attr.max_rd_atomic > target->max_dest_rd_atomic)
        status = IBV_WC_REM_INV_REQ_ERR;
    else if (request->bytes == 0 && !(target->access & right_for(request->opcode)))
        status = IBV_WC_REM_INV_REQ_ERR;
    else if (request->bytes == 0)
        // An empty request checks no key, but its target has to accept it and to answer.
        return is_alive(&registry->processes[target->process - 1]) ? IBV_WC_SUCCESS : UNREACHABLE;
    struct key_entry *key = request->rkey & RKEY ? key_of(request->rkey & ~(uint32_t)RKEY) : NULL;
    if (status == IBV_WC_SUCCESS && key == NULL)
        status = IBV_WC_REM_ACCESS_ERR;
    if (status == IBV_WC_SUCCESS) {
        lock(&key->guard);
        status = under_key(target, key, request);
        pthread_mutex_unlock(&key->guard);
    }
    // A target that has to refuse a request refuses all that come after it.
    if (status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR)
        __atomic_store_n(&target->state, IBV_QPS_ERR, __ATOMIC_RELEASE);
    return status;
}
