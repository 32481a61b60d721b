// Devices, ports, protection domains, memory regions, completion queues: what a program makes
// before it has queue pairs.

#include "adapter.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, POPULATE_READ = 22, POPULATE_WRITE = 23 };

static struct ibv_device devices[DEVICES];
static uint64_t registered_bytes;

// As libibverbs in a process where some library has called ibv_fork_init, on a kernel that copies
// registered pages when a process forks: children lack registered pages, though they need not.
EXPORTED enum ibv_fork_status ibv_is_fork_initialized(void) { return IBV_FORK_UNNEEDED; }

EXPORTED int ibv_fork_init(void) { return 0; }

EXPORTED struct ibv_device **ibv_get_device_list(int *count)
{
    read_settings();
    struct ibv_device **list = calloc(DEVICES + 1, sizeof *list);
    for (unsigned i = 0; i < settings.devices; i++) {
        devices[i].node_type = IBV_NODE_CA;
        devices[i].transport_type = IBV_TRANSPORT_IB;
        snprintf(devices[i].name, sizeof devices[i].name, "adapter%u", i);
        list[i] = &devices[i];
    }
    if (count != NULL)
        *count = (int)settings.devices;
    return list;
}

EXPORTED void ibv_free_device_list(struct ibv_device **list) { free(list); }

EXPORTED const char *ibv_get_device_name(struct ibv_device *device) { return device->name; }

static unsigned index_of(const struct ibv_context *context)
{
    return (unsigned)(context->device - devices);
}

EXPORTED __be64 ibv_get_device_guid(struct ibv_device *device)
{
    return __builtin_bswap64(0x0200000000000001 + (uint64_t)(device - devices));
}

// The GIDs of a RoCE port: a link-local one, and the one of its IPv4 address. Returns whether there
// is one.
int gid_at(unsigned device, int index, union ibv_gid *gid)
{
    unsigned char local[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xfe, 0, 0, 0};
    unsigned char mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 78, 0, 0};
    memset(gid, 0, sizeof *gid);
    if (index < 0 || index > !settings.infiniband)
        return 0;
    memcpy(gid->raw, index == 0 ? local : mapped, 16);
    gid->raw[15] = (uint8_t)(device + 1);
    return 1;
}

int is_gid(const union ibv_gid *wanted)
{
    for (unsigned device = 0; device < settings.devices; device++)
        for (int index = 0; index < GIDS; index++) {
            union ibv_gid gid;
            if (gid_at(device, index, &gid) && memcmp(&gid, wanted, sizeof gid) == 0)
                return 1;
        }
    return 0;
}

EXPORTED int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
                           union ibv_gid *gid)
{
    if (port != 1 || index < 0 || index >= GIDS)
        return -1;
    gid_at(index_of(context), index, gid); // all zero: no entry
    return 0;
}

EXPORTED int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                               struct ibv_gid_entry *entry, uint32_t flags, size_t bytes)
{
    struct ibv_gid_entry found = {.gid_index = index, .port_num = port};
    if (port != 1 || flags != 0 || index >= GIDS)
        return EINVAL;
    if (!gid_at(index_of(context), (int)index, &found.gid))
        return ENODATA;
    found.gid_type = settings.infiniband ? IBV_GID_TYPE_IB
                     : index == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    memcpy(entry, &found, bytes < sizeof found ? bytes : sizeof found);
    return 0;
}

EXPORTED int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    (void)context;
    *pkey = 0xffff;
    return port == 1 && index == 0 ? 0 : -1;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
                      size_t bytes)
{
    if (port != 1)
        return EINVAL;
    struct ibv_port_attr all = {
        .state = settings.port_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE, .max_mtu = IBV_MTU_4096,
        .active_mtu = IBV_MTU_4096, .gid_tbl_len = GIDS, .max_msg_sz = settings.message_bytes_max,
        .pkey_tbl_len = 1, .phys_state = settings.port_down ? 3 : 5, .active_width = 1,
        .active_speed = 1,
        .lid = settings.infiniband ? (uint16_t)(index_of(context) + 1) : 0,
        .link_layer = settings.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET};
    memset(attr, 0, bytes);
    memcpy(attr, &all, bytes < sizeof all ? bytes : sizeof all);
    return 0;
}

// The function after the macro, whose callers may know of less than all of the structure.
EXPORTED int ibv_query_port(struct ibv_context *context, uint8_t port,
                            struct _compat_ibv_port_attr *attr)
{
    return query_port(context, port, (struct ibv_port_attr *)attr,
                      offsetof(struct ibv_port_attr, port_cap_flags2));
}

EXPORTED int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    *attr = (struct ibv_device_attr){
        .fw_ver = "adapter", .node_guid = ibv_get_device_guid(context->device),
        .sys_image_guid = ibv_get_device_guid(context->device), .max_mr_size = UINT64_MAX,
        .page_size_cap = PAGE, .vendor_id = VENDOR, .vendor_part_id = settings.order,
        .max_qp = QPS, .max_qp_wr = QP_WR, .max_sge = SGE, .max_sge_rd = SGE, .max_cq = 4096,
        .max_cqe = CQES, .max_mr = KEYS, .max_pd = 4096,
        .max_qp_rd_atom = (int)settings.rd_atomic, .max_res_rd_atom = INT32_MAX,
        .max_qp_init_rd_atom = (int)settings.rd_atomic,
        .atomic_cap = settings.glob ? IBV_ATOMIC_GLOB : IBV_ATOMIC_HCA, .max_pkeys = 1,
        .phys_port_cnt = 1};
    return 0;
}

static int query_device_ex(struct ibv_context *context,
                           const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t bytes)
{
    if ((input != NULL && input->comp_mask != 0) || bytes < sizeof attr->orig_attr)
        return EINVAL;
    memset(attr, 0, bytes);
    return ibv_query_device(context, &attr->orig_attr);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)qp;
    *bad = wr;
    return EOPNOTSUPP;
}

EXPORTED struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    int error = join_registry(), ends[2];
    if (error != 0 || pipe2(ends, O_CLOEXEC) != 0) {
        errno = error != 0 ? error : errno;
        return NULL;
    }
    struct verbs_context *all = calloc(1, sizeof *all);
    struct ibv_context *context = &all->context;
    all->sz = sizeof *all;
    all->query_port = query_port;
    all->query_device_ex = query_device_ex;
    context->device = device;
    context->abi_compat = __VERBS_ABI_IS_EXTENDED;
    context->num_comp_vectors = 1;
    context->cmd_fd = ends[1]; // by which events come
    context->async_fd = ends[0];
    pthread_mutex_init(&context->mutex, NULL);
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = arm_cq;
    return context;
}

EXPORTED int ibv_close_device(struct ibv_context *context)
{
    close(context->cmd_fd);
    close(context->async_fd);
    free((char *)context - offsetof(struct verbs_context, context));
    return 0;
}

EXPORTED int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    char byte;
    event->event_type = IBV_EVENT_DEVICE_FATAL; // the only one
    return read(context->async_fd, &byte, 1) == 1 ? 0 : -1;
}

EXPORTED void ibv_ack_async_event(struct ibv_async_event *event) { (void)event; }

EXPORTED struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct domain *domain = calloc(1, sizeof *domain);
    domain->base.context = context;
    domain->number = __atomic_add_fetch(&registry->pds, 1, __ATOMIC_RELAXED);
    return &domain->base;
}

EXPORTED int ibv_dealloc_pd(struct ibv_pd *pd)
{
    free(pd);
    return 0;
}

static int advise(void *base, size_t bytes, int advice)
{
    uintptr_t from = (uintptr_t)base / PAGE * PAGE;
    uintptr_t to = ((uintptr_t)base + bytes + PAGE - 1) / PAGE * PAGE;
    return madvise((void *)from, to - from, advice);
}

// A device pins memory, so all of it must be there, and must be writable if it will be written.
static int pin(void *base, size_t bytes, int is_written)
{
    if (bytes == 0 || advise(base, bytes, is_written ? POPULATE_WRITE : POPULATE_READ) == 0)
        return 0;
    return errno == EINVAL || errno == ENOSYS ? 0 : errno == ENOMEM ? EFAULT : errno;
}

EXPORTED struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *base, size_t bytes,
                                         uint64_t iova, unsigned access)
{
    int is_written = (access & IBV_ACCESS_LOCAL_WRITE) != 0, error = 0;
    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !is_written)
        error = EINVAL;
    else if (__atomic_add_fetch(&registered_bytes, bytes, __ATOMIC_RELAXED) >
             settings.memlock_bytes)
        error = ENOMEM;
    else
        error = pin(base, bytes, is_written);
    uint32_t number = 0;
    struct key_entry *entry = error == 0 ? claim_key(((struct domain *)pd)->number, &number) : NULL;
    if (entry == NULL) {
        if (error != EINVAL)
            __atomic_sub_fetch(&registered_bytes, bytes, __ATOMIC_RELAXED);
        errno = error != 0 ? error : ENOMEM;
        return NULL;
    }
    struct memory_region *region = calloc(1, sizeof *region);
    region->entry = entry;
    region->base = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = base,
                                   .length = bytes, .lkey = number, .rkey = number | RKEY};
    lock(&entry->guard);
    entry->access = access;
    entry->address = (uint64_t)(uintptr_t)base;
    entry->iova = iova;
    entry->bytes = bytes;
    pthread_mutex_unlock(&entry->guard);
    advise(base, bytes, MADV_DONTFORK);
    return &region->base;
}

EXPORTED struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *base, size_t bytes, uint64_t iova,
                                        int access)
{
    return ibv_reg_mr_iova2(pd, base, bytes, iova, (unsigned)access);
}

EXPORTED struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *base, size_t bytes, int access)
{
    return ibv_reg_mr_iova2(pd, base, bytes, (uint64_t)(uintptr_t)base, (unsigned)access);
}

EXPORTED int ibv_dereg_mr(struct ibv_mr *base)
{
    struct memory_region *region = (struct memory_region *)base;
    // Nothing moves any more when it returns: neither what others sent, nor what this process does.
    pthread_mutex_lock(&engine);
    lock(&region->entry->guard);
    region->entry->bytes = 0;
    release_entry(&region->entry->process);
    pthread_mutex_unlock(&region->entry->guard);
    pthread_mutex_unlock(&engine);
    __atomic_sub_fetch(&registered_bytes, base->length, __ATOMIC_RELAXED);
    advise(base->addr, base->length, MADV_DOFORK);
    free(region);
    return 0;
}

// A channel is a pipe of completion queues; `refcnt` keeps its end to write to.
EXPORTED struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    struct ibv_comp_channel *channel = calloc(1, sizeof *channel);
    *channel = (struct ibv_comp_channel){.context = context, .fd = ends[0], .refcnt = ends[1]};
    return channel;
}

EXPORTED int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    close(channel->fd);
    close(channel->refcnt);
    free(channel);
    return 0;
}

EXPORTED int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
    if (read(channel->fd, cq, sizeof *cq) != sizeof *cq)
        return -1;
    *context = (*cq)->cq_context;
    return 0;
}

EXPORTED void ibv_ack_cq_events(struct ibv_cq *cq, unsigned events)
{
    cq->comp_events_completed += events;
}

EXPORTED struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
                                      struct ibv_comp_channel *channel, int vector)
{
    if (entries < 1 || entries > CQES || vector != 0) {
        errno = EINVAL;
        return NULL;
    }
    struct completion_queue *cq = calloc(1, sizeof *cq);
    cq->ring = calloc((size_t)entries, sizeof *cq->ring);
    cq->base = (struct ibv_cq){.context = context, .channel = channel, .cq_context = cq_context,
                               .cqe = entries};
    return &cq->base;
}

EXPORTED int ibv_destroy_cq(struct ibv_cq *base)
{
    free(((struct completion_queue *)base)->ring);
    free(base);
    return 0;
}

EXPORTED const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    static const char *const words[] = {
        "success", "local length error", "local QP operation error",
        "local EE context operation error", "local protection error",
        "Work Request Flushed Error", "memory management operation error", "bad response error",
        "local access error", "remote invalid request error", "remote access error",
        "remote operation error", "transport retry counter exceeded"};
    return (unsigned)status < sizeof words / sizeof *words ? words[status] : "unknown";
}
