// What the adapter promises, asked by a program of verbs under MPI: see scripts/dev/adapter-test.
// Linked with the real library it runs on a real device, without what only the adapter promises.

#include "../check.h"
#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <sys/wait.h>

enum { BYTES = 1 << 20, SLOT = 32768, DEPTH = 64, RANKS = 16, ROUNDS = 2000 };
enum { COUNTER = 0, LOCK = 8, GUARDED = 16, FLAG = 24, MIXED = 64, FLAGS = 4096, SLOTS = 65536 };
enum { RIGHTS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

struct address {
    uint32_t qpn, psn, lid;
    union ibv_gid gid;
};

struct memory {
    uint64_t at;
    uint32_t rkey, narrow_rkey; // the second without remote rights
};

static struct ibv_context *context;
static struct ibv_port_attr port;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;
static int is_adapter;
static char *window, *local;
static struct ibv_mr *local_region;
static struct memory targets[RANKS];
static struct ibv_qp *to[RANKS];

static int gid_index(void) { return port.link_layer == IBV_LINK_LAYER_ETHERNET ? 1 : 0; }

static void open_first_device(void)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    CHECK(list != NULL && count > 0);
    context = ibv_open_device(list[rank % count]);
    CHECK(context != NULL);
    is_adapter = strncmp(ibv_get_device_name(context->device), "adapter", 7) == 0;
    ibv_free_device_list(list);
    CHECK_EQ(ibv_query_port(context, 1, &port), 0);
    CHECK_EQ(port.state, IBV_PORT_ACTIVE);
    pd = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    cq = ibv_create_cq(context, 4 * DEPTH, NULL, channel, 0);
    CHECK(pd != NULL && channel != NULL && cq != NULL);
}

static struct ibv_qp *new_qp(struct address *address)
{
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                    .cap = {DEPTH, 1, 4, 1, 64}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    CHECK(qp != NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = RIGHTS};
    CHECK_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                           IBV_QP_ACCESS_FLAGS), 0);
    *address = (struct address){qp->qp_num, 1000u + (uint32_t)rank, port.lid, {{0}}};
    CHECK_EQ(ibv_query_gid(context, 1, gid_index(), &address->gid), 0);
    return qp;
}

static void connect_qp(struct ibv_qp *qp, uint32_t own_psn, const struct address *other)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR, .path_mtu = port.active_mtu, .dest_qp_num = other->qpn,
        .rq_psn = other->psn, .max_dest_rd_atomic = 8, .min_rnr_timer = 12,
        .ah_attr = {.is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET, .port_num = 1,
                    .dlid = (uint16_t)other->lid,
                    .grh = {.dgid = other->gid, .sgid_index = (uint8_t)gid_index(),
                            .hop_limit = 64}}};
    CHECK_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                           IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                           IBV_QP_MIN_RNR_TIMER), 0);
    // Soft-RoCE takes a retry_cnt of 7 for "without end".
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6,
                                .rnr_retry = 7, .sq_psn = own_psn, .max_rd_atomic = 8};
    CHECK_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                           IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

// New queue pairs to all ranks, this one too.
static void connect_all(void)
{
    struct address mine[RANKS], theirs[RANKS];
    for (int i = 0; i < size; i++)
        to[i] = new_qp(&mine[i]);
    OK(MPI_Alltoall(mine, sizeof *mine, MPI_BYTE, theirs, sizeof *theirs, MPI_BYTE,
                    MPI_COMM_WORLD));
    for (int i = 0; i < size; i++)
        connect_qp(to[i], mine[i].psn, &theirs[i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void disconnect_all(void)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < size; i++)
        CHECK_EQ(ibv_destroy_qp(to[i]), 0);
}

static struct ibv_wc next_completion(void)
{
    struct ibv_wc wc;
    int count;
    while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
        sched_yield();
    CHECK_EQ(count, 1);
    return wc;
}

static void expect(uint64_t id, enum ibv_wc_status status)
{
    struct ibv_wc wc = next_completion();
    if (wc.status != status)
        check_failed(__FILE__, __LINE__, "completion %d: %s, not %s", (int)wc.wr_id,
                     ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
    CHECK_EQ(wc.wr_id, id);
}

struct op {
    enum ibv_wr_opcode opcode;
    unsigned flags;
    uint64_t id, from, at, bytes, add, swap;
    uint32_t rkey, lkey; // 0: the right one
};

static int try_post(int target, struct op op)
{
    struct ibv_sge sge = {(uint64_t)(local + op.from), (uint32_t)op.bytes,
                          op.lkey != 0 ? op.lkey : local_region->lkey};
    struct ibv_send_wr wr = {.wr_id = op.id, .sg_list = &sge, .num_sge = 1, .opcode = op.opcode,
                             .send_flags = op.flags}, *bad;
    uint32_t rkey = op.rkey != 0 ? op.rkey : targets[target].rkey;
    if (op.opcode == IBV_WR_RDMA_WRITE || op.opcode == IBV_WR_RDMA_READ) {
        wr.wr.rdma.remote_addr = targets[target].at + op.at;
        wr.wr.rdma.rkey = rkey;
    } else {
        wr.wr.atomic.remote_addr = targets[target].at + op.at;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = op.add;
        wr.wr.atomic.swap = op.swap;
    }
    return ibv_post_send(to[target], &wr, &bad);
}

static void post(int target, struct op op) { CHECK_EQ(try_post(target, op), 0); }

static void act(int target, struct op op)
{
    static uint64_t id = 100;
    op.id = ++id;
    op.flags |= IBV_SEND_SIGNALED;
    post(target, op);
    expect(op.id, IBV_WC_SUCCESS);
}

static uint64_t *word(uint64_t at) { return (uint64_t *)(local + at); }

static uint64_t swap_at(int target, uint64_t at, uint64_t old, uint64_t new)
{
    act(target, (struct op){IBV_WR_ATOMIC_CMP_AND_SWP, .from = 64, .at = at, .bytes = 8, .add = old,
                            .swap = new});
    return *word(64);
}

static uint64_t read_at(int target, uint64_t at)
{
    act(target, (struct op){IBV_WR_RDMA_READ, .from = 64, .at = at, .bytes = 8});
    return *word(64);
}

static void write_at(int target, uint64_t at, uint64_t value)
{
    *word(72) = value;
    act(target, (struct op){IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, .from = 72, .at = at, .bytes = 8});
}

static int keeps(const char *order)
{
    const char *kept = getenv("ADAPTER_ORDER");
    return kept != NULL && strcmp(kept, order) == 0;
}

// WRITEs of all to all, then a flag after them that nobody is told of: memory alone says it came.
static void writes(void)
{
    unsigned fence = keeps("none") ? IBV_SEND_FENCE : 0;
    for (int r = 0; r < size; r++) {
        memset(local + SLOTS + r * SLOT, 1 + rank * 16 + r, SLOT);
        post(r, (struct op){IBV_WR_RDMA_WRITE, .from = (uint64_t)(SLOTS + r * SLOT),
                            .at = (uint64_t)(SLOTS + rank * SLOT), .bytes = SLOT});
        *word(128) = 0xabc0u + (uint64_t)rank;
        post(r, (struct op){IBV_WR_RDMA_WRITE, IBV_SEND_INLINE | fence, .from = 128,
                            .at = (uint64_t)(FLAGS + 8 * rank), .bytes = 8});
        *word(128) = 0; // inline: it was taken with the post
    }
    for (int r = 0; r < size; r++) {
        volatile uint64_t *flag = (uint64_t *)(window + FLAGS) + r;
        CHECK(1);
        while (*flag != 0xabc0u + (uint64_t)r)
            sched_yield();
        for (int i = 0; i < SLOT; i++)
            CHECK_EQ(window[SLOTS + r * SLOT + i], (char)(1 + r * 16 + rank));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) {
        act(r, (struct op){IBV_WR_RDMA_READ, .from = SLOTS, .at = SLOTS, .bytes = SLOT});
        for (int i = 0; i < SLOT; i++)
            CHECK_EQ(local[SLOTS + i], (char)(1 + r));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// One request gathers from three places, one scatters to three.
static void several_places(void)
{
    int target = next_rank();
    struct ibv_send_wr wr = {.wr_id = 7, .num_sge = 3, .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED}, *bad;
    struct ibv_sge places[3];
    for (uint32_t i = 0; i < 3; i++) {
        places[i] = (struct ibv_sge){(uint64_t)(local + 1000 * (i + 1)), 5 + i, local_region->lkey};
        memset(local + 1000 * (i + 1), (int)('a' + i), 10);
    }
    wr.sg_list = places;
    wr.wr.rdma.remote_addr = targets[target].at + (uint64_t)(SLOTS + rank * SLOT);
    wr.wr.rdma.rkey = targets[target].rkey;
    CHECK_EQ(ibv_post_send(to[target], &wr, &bad), 0);
    expect(7, IBV_WC_SUCCESS);
    memset(local, 0, 8000);
    wr.opcode = IBV_WR_RDMA_READ;
    CHECK_EQ(ibv_post_send(to[target], &wr, &bad), 0);
    expect(7, IBV_WC_SUCCESS);
    CHECK_EQ(memcmp(local + 1000, "aaaaa\0", 6), 0);
    CHECK_EQ(memcmp(local + 2000, "bbbbbb\0", 7), 0);
    CHECK_EQ(memcmp(local + 3000, "ccccccc\0", 8), 0);
}

// A counter, and a lock that guards one which is not changed by atomic operations.
static void atomics(void)
{
    uint64_t last = 0, one = 1 + ((uint64_t)1 << 40);
    for (int i = 0; i < 300; i++) {
        act(0, (struct op){IBV_WR_ATOMIC_FETCH_AND_ADD, .from = 64, .at = COUNTER, .bytes = 8,
                           .add = one});
        CHECK(i == 0 || *word(64) > last);
        last = *word(64);
    }
    for (int i = 0; i < 30; i++) {
        while (swap_at(0, LOCK, 0, (uint64_t)rank + 1) != 0)
            sched_yield();
        write_at(0, GUARDED, read_at(0, GUARDED) + 1);
        CHECK_EQ(swap_at(0, LOCK, (uint64_t)rank + 1, 0), rank + 1);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(read_at(0, COUNTER), 300 * (uint64_t)size * one);
    CHECK_EQ(read_at(0, LOCK), 0);
    CHECK_EQ(read_at(0, GUARDED), 30 * size);
}

// Where atomic operations are coherent with the CPU's, the owner of a word may use its own.
static void atomics_and_cpu(void)
{
    struct ibv_device_attr attr;
    CHECK_EQ(ibv_query_device(context, &attr), 0);
    if (attr.atomic_cap != IBV_ATOMIC_GLOB)
        return;
    uint64_t *sum = (uint64_t *)(window + MIXED), *held = sum + 1;
    volatile uint64_t *kept = sum + 2;
    int target = next_rank();
    for (int i = 0; i < 500; i++) {
        uint64_t nobody = 0;
        __atomic_fetch_add(sum, 1, __ATOMIC_RELAXED);
        act(target, (struct op){IBV_WR_ATOMIC_FETCH_AND_ADD, .from = 64, .at = MIXED, .bytes = 8,
                                .add = 1});
        while (!__atomic_compare_exchange_n(held, &nobody, 1, 0, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED)) {
            nobody = 0;
            sched_yield();
        }
        *kept = *kept + 1;
        __atomic_store_n(held, 0, __ATOMIC_RELEASE);
        while (swap_at(target, MIXED + 8, 0, 2) != 0)
            sched_yield();
        write_at(target, MIXED + 16, read_at(target, MIXED + 16) + 1);
        CHECK_EQ(swap_at(target, MIXED + 8, 2, 0), 2);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(*sum, 1000);
    CHECK_EQ(*kept, 1000);
}

// A READ and a WRITE to the same place after it: how often did the READ see what was written?
static int overtaken(unsigned fence)
{
    uint64_t at = (uint64_t)(FLAGS + 8 * (RANKS + rank));
    int target = next_rank(), often = 0;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        write_at(target, at, 0);
        *word(72) = i;
        post(target, (struct op){IBV_WR_RDMA_READ, .from = 64, .at = at, .bytes = 8});
        post(target, (struct op){IBV_WR_RDMA_WRITE, IBV_SEND_INLINE | fence | IBV_SEND_SIGNALED,
                                 .id = i, .from = 72, .at = at, .bytes = 8});
        expect(i, IBV_WC_SUCCESS);
        often += *word(64) != 0;
    }
    return often;
}

// Two WRITEs to the same place, and a READ of it: how often did the READ, and how often the first
// WRITE, come out of its turn?
static void behind_writes(unsigned fence, int *reads, int *writes)
{
    uint64_t at = (uint64_t)(FLAGS + 8 * (RANKS + rank));
    int target = next_rank();
    *reads = *writes = 0;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        write_at(target, at, 0);
        for (uint64_t value = 2 * i; value <= 2 * i + 1; value++) {
            *word(72) = value;
            post(target, (struct op){IBV_WR_RDMA_WRITE, IBV_SEND_INLINE | fence, .from = 72,
                                     .at = at, .bytes = 8});
        }
        post(target, (struct op){IBV_WR_RDMA_READ, fence | IBV_SEND_SIGNALED, .id = i, .from = 64,
                                 .at = at, .bytes = 8});
        expect(i, IBV_WC_SUCCESS);
        *reads += *word(64) != 2 * i + 1;
        *writes += read_at(target, at) != 2 * i + 1;
    }
}

static void orders(void)
{
    int reads, writes;
    behind_writes(IBV_SEND_FENCE, &reads, &writes);
    CHECK_EQ(reads, 0);
    CHECK_EQ(writes, 0);
    behind_writes(0, &reads, &writes);
    CHECK_EQ(reads > 0, keeps("waw") || keeps("none"));
    CHECK_EQ(writes > 0, keeps("none"));
}

// The send queue takes DEPTH requests, and the next when a completion was polled.
static void full_queue(void)
{
    int target = next_rank();
    struct op op = {IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, .id = 1, .from = 72, .at = FLAG,
                    .bytes = 8};
    for (int i = 1; i < DEPTH; i++)
        post(target, op);
    op.id = 2, op.flags |= IBV_SEND_SIGNALED;
    post(target, op);
    usleep(20000); // long enough for all of it to be done
    op.id = 3;
    CHECK_EQ(try_post(target, op), ENOMEM);
    expect(2, IBV_WC_SUCCESS);
    post(target, op);
    expect(3, IBV_WC_SUCCESS);
}

static void events(void)
{
    struct ibv_cq *which;
    void *unused;
    CHECK_EQ(ibv_req_notify_cq(cq, 0), 0);
    post(next_rank(), (struct op){IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, .id = 9, .from = 64,
                                  .at = FLAG, .bytes = 8});
    CHECK_EQ(ibv_get_cq_event(channel, &which, &unused), 0);
    CHECK(which == cq);
    ibv_ack_cq_events(cq, 1);
    expect(9, IBV_WC_SUCCESS);
}

// A wrong request fails, what is after it is flushed, and the connection is of no use any more.
static void wrong(struct op op, enum ibv_wc_status status)
{
    int target = next_rank();
    connect_all();
    // Two ranks share their queue pairs: the other end's would be flushed.
    if (size == 2 && rank == 1) {
        disconnect_all();
        return;
    }
    op.id = 1;
    op.flags |= IBV_SEND_FENCE; // what is before it is done
    post(target, (struct op){IBV_WR_RDMA_WRITE, .from = 0, .at = SLOTS, .bytes = 8});
    post(target, op);
    post(target, (struct op){IBV_WR_RDMA_WRITE, .id = 2, .from = 0, .at = SLOTS, .bytes = 8});
    expect(1, status);
    expect(2, IBV_WC_WR_FLUSH_ERR);
    post(target, (struct op){IBV_WR_RDMA_READ, .id = 3, .from = 0, .at = SLOTS, .bytes = 8});
    expect(3, IBV_WC_WR_FLUSH_ERR);
    disconnect_all();
}

static void wrong_requests(void)
{
    const struct memory *target = &targets[next_rank()];
    const enum ibv_wr_opcode write = IBV_WR_RDMA_WRITE, read = IBV_WR_RDMA_READ;
    const enum ibv_wr_opcode add = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wrong((struct op){write, .bytes = 8, .at = BYTES - 7}, IBV_WC_REM_ACCESS_ERR);
    wrong((struct op){read, .bytes = 8, .at = (uint64_t)-8}, IBV_WC_REM_ACCESS_ERR);
    wrong((struct op){write, .bytes = 8, .rkey = target->rkey + 1}, IBV_WC_REM_ACCESS_ERR);
    wrong((struct op){write, .bytes = 8, .rkey = target->narrow_rkey}, IBV_WC_REM_ACCESS_ERR);
    wrong((struct op){read, .bytes = 8, .rkey = target->narrow_rkey}, IBV_WC_REM_ACCESS_ERR);
    wrong((struct op){add, .bytes = 8, .rkey = target->narrow_rkey}, IBV_WC_REM_ACCESS_ERR);
    // Some drivers refuse to post these, or have another word for them.
    if (!is_adapter)
        return;
    wrong((struct op){add, .bytes = 8, .at = 4}, IBV_WC_REM_INV_REQ_ERR);
    wrong((struct op){write, .bytes = 8, .from = BYTES - 4}, IBV_WC_LOC_PROT_ERR);
    wrong((struct op){write, .bytes = 8, .lkey = local_region->lkey + 1}, IBV_WC_LOC_PROT_ERR);
    if (port.max_msg_sz < BYTES)
        wrong((struct op){write, .bytes = port.max_msg_sz + 1}, IBV_WC_LOC_LEN_ERR);
}

// Exchanges addresses with the process at the other end of a pair of pipes.
static void exchange(const struct address *mine, struct address *theirs, int in, int out)
{
    CHECK_EQ(write(out, mine, sizeof *mine), sizeof *mine);
    CHECK_EQ(read(in, theirs, sizeof *theirs), sizeof *theirs);
}

// The process that dies: it connects, and waits for its end.
static void be_the_victim(int in, int out)
{
    struct address mine, theirs;
    open_first_device();
    struct ibv_qp *qp = new_qp(&mine);
    exchange(&mine, &theirs, in, out);
    connect_qp(qp, mine.psn, &theirs);
    exchange(&mine, &theirs, in, out);
    for (;;)
        pause();
}

static void dead_target(pid_t victim, int in, int out)
{
    struct address mine, theirs;
    struct ibv_sge none = {0};
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &none, .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED}, *bad;
    struct ibv_qp *qp = new_qp(&mine);
    exchange(&mine, &theirs, in, out);
    connect_qp(qp, mine.psn, &theirs);
    exchange(&mine, &theirs, in, out);
    CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
    expect(1, IBV_WC_SUCCESS);
    CHECK_EQ(kill(victim, SIGKILL), 0);
    waitpid(victim, NULL, 0);
    CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
    expect(1, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(ibv_destroy_qp(qp), 0);
}

static void expose(void)
{
    struct memory mine;
    window = calloc(1, BYTES), local = calloc(1, BYTES);
    local_region = ibv_reg_mr(pd, local, BYTES, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mr *region = ibv_reg_mr(pd, window, BYTES, IBV_ACCESS_LOCAL_WRITE | RIGHTS);
    struct ibv_mr *narrow = ibv_reg_mr(pd, window, BYTES, IBV_ACCESS_LOCAL_WRITE);
    CHECK(local_region != NULL && region != NULL && narrow != NULL);
    // Some drivers give no remote key at all where there are no remote rights.
    mine = (struct memory){(uint64_t)window, region->rkey,
                           narrow->rkey != 0 ? narrow->rkey : region->rkey + 7};
    OK(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, targets, sizeof mine, MPI_BYTE,
                     MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    int there[2], back[2];
    if (pipe(there) != 0 || pipe(back) != 0)
        return 1;
    pid_t victim = fork();
    if (victim == 0)
        be_the_victim(there[0], back[1]);
    check_start(&argc, &argv);
    open_first_device();
    expose();
    connect_all();
    writes();
    several_places();
    atomics();
    atomics_and_cpu();
    CHECK_EQ(overtaken(IBV_SEND_FENCE), 0);
    if (is_adapter && getenv("ADAPTER_PROMPT") == NULL)
        CHECK(overtaken(0) > 0);
    if (is_adapter) {
        orders();
        full_queue();
    }
    events();
    disconnect_all();
    wrong_requests();
    dead_target(victim, back[0], there[1]);
    return check_end();
}
