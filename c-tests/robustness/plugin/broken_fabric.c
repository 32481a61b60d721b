/* A library that breaks libfabric for fompi selftest, which looks its functions up by dlvsym(3), as
 * BROKEN says: 1 additions add nothing, 2 keys never end, 3 writes come late, although the provider
 * promises their order, 4 operations that fail get no completion, 5 keys never end if the provider may
 * choose them, as with cxi. tests/test_selftest.py preloads it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define LATE 64

static int (*real_getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
                           struct fi_info **);
static int (*real_fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
static struct fi_ops_fabric real_fabric_ops, fabric_ops;
static struct fi_ops_domain real_domain, domain_ops;
static struct fi_ops_rma real_rma, rma_ops;
static struct fi_ops_atomic atomic_ops;
static struct fi_ops_cq real_cq, cq_ops;
static struct fi_ops_mr real_mr, mr_ops;
static struct fi_ops region_ops;
static int keys_of_provider;

/* The writes that are late. */
static struct {
    struct fid_ep *ep;
    const void *from;
    size_t bytes;
    void *desc;
    fi_addr_t peer;
    uint64_t at, key;
} late[LATE];
static int late_count;

static void post_late(void)
{
    for (int i = 0; i < late_count; i++)
        while (real_rma.write(late[i].ep, late[i].from, late[i].bytes, late[i].desc, late[i].peer,
                              late[i].at, late[i].key, NULL) == -FI_EAGAIN)
            ;
    late_count = 0;
}

static ssize_t write_late(struct fid_ep *ep, const void *from, size_t bytes, void *desc,
                          fi_addr_t peer, uint64_t at, uint64_t key, void *context)
{
    (void)context;
    if (late_count == LATE)
        post_late();
    late[late_count].ep = ep;
    late[late_count].from = from;
    late[late_count].bytes = bytes;
    late[late_count].desc = desc;
    late[late_count].peer = peer;
    late[late_count].at = at;
    late[late_count++].key = key;
    return 0;
}

static ssize_t deliver(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags)
{
    post_late();
    return real_rma.writemsg(ep, message, flags);
}

static ssize_t read_in_order(struct fid_ep *ep, void *to, size_t bytes, void *desc, fi_addr_t peer,
                             uint64_t at, uint64_t key, void *context)
{
    post_late();
    return real_rma.read(ep, to, bytes, desc, peer, at, key, context);
}

static ssize_t completions(struct fid_cq *cq, void *to, size_t count)
{
    post_late();
    return real_cq.read(cq, to, count);
}

static ssize_t completions_without_errors(struct fid_cq *cq, void *to, size_t count)
{
    struct fi_cq_err_entry failed = {0};
    ssize_t got = real_cq.read(cq, to, count);
    if (got != -FI_EAVAIL)
        return got;
    real_cq.readerr(cq, &failed, 0);
    return -FI_EAGAIN;
}

static ssize_t add_nothing(struct fid_ep *ep, const void *from, size_t count, void *desc,
                           void *result, void *result_desc, fi_addr_t peer, uint64_t at,
                           uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
    struct fi_ioc none = {(void *)from, count}, fetched = {result, count};
    struct fi_rma_ioc target = {at, count, key};
    struct fi_msg_atomic message = {&none, &desc, 1, peer, &target, 1, type, FI_ATOMIC_READ,
                                    context, 0};
    (void)op;
    return atomic_ops.readwritemsg(ep, &message, &fetched, &result_desc, 1, FI_COMPLETION);
}

static int open_queue(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
                      void *context)
{
    int code = real_domain.cq_open(domain, attr, cq, context);
    if (code == 0 && (BROKEN == 3 || BROKEN == 4)) {
        real_cq = cq_ops = *(*cq)->ops;
        cq_ops.read = BROKEN == 3 ? completions : completions_without_errors;
        (*cq)->ops = &cq_ops;
    }
    return code;
}

static int open_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
                         void *context)
{
    int code = real_domain.endpoint(domain, info, ep, context);
    if (code == 0 && BROKEN == 3) {
        real_rma = rma_ops = *(*ep)->rma;
        rma_ops.write = write_late;
        rma_ops.writemsg = deliver;
        rma_ops.read = read_in_order;
        (*ep)->rma = &rma_ops;
    }
    if (code == 0 && BROKEN == 1) {
        atomic_ops = *(*ep)->atomic;
        atomic_ops.readwrite = add_nothing;
        (*ep)->atomic = &atomic_ops;
    }
    return code;
}

static int close_nothing(struct fid *fid)
{
    (void)fid;
    return 0;
}

static int keep_key(struct fid *fid, const void *at, size_t bytes, uint64_t access, uint64_t offset,
                    uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
    int code = real_mr.reg(fid, at, bytes, access, offset, key, flags, mr, context);
    if (code == 0) {
        region_ops = *(*mr)->fid.ops;
        region_ops.close = close_nothing;
        (*mr)->fid.ops = &region_ops;
    }
    return code;
}

static int open_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
                       void *context)
{
    int code = real_fabric_ops.domain(fabric, info, domain, context);
    if (code == 0) {
        real_domain = domain_ops = *(*domain)->ops;
        domain_ops.endpoint = open_endpoint;
        domain_ops.cq_open = open_queue;
        (*domain)->ops = &domain_ops;
    }
    if (code == 0 && (BROKEN == 2 || (BROKEN == 5 && keys_of_provider))) {
        real_mr = mr_ops = *(*domain)->mr;
        mr_ops.reg = keep_key;
        (*domain)->mr = &mr_ops;
    }
    return code;
}

static int open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
    int code = real_fabric(attr, fabric, context);
    if (code == 0) {
        real_fabric_ops = fabric_ops = *(*fabric)->ops;
        fabric_ops.domain = open_domain;
        (*fabric)->ops = &fabric_ops;
    }
    return code;
}

static int promise_order(uint32_t version, const char *node, const char *service, uint64_t flags,
                         const struct fi_info *hints, struct fi_info **info)
{
    int code = real_getinfo(version, node, service, flags, hints, info);
    keys_of_provider = (hints->domain_attr->mr_mode & FI_MR_PROV_KEY) != 0;
    if (code == 0 && BROKEN == 3) {
        (*info)->tx_attr->msg_order |= FI_ORDER_WAW;
        (*info)->ep_attr->max_order_waw_size = 1 << 20;
    }
    return code;
}

void *dlvsym(void *library, const char *name, const char *version)
{
    void *(*real)(void *, const char *, const char *) = dlsym(RTLD_NEXT, "dlvsym");
    void *found = real(library, name, version);
    if (strcmp(name, "fi_fabric") == 0) {
        real_fabric = found;
        return open_fabric;
    }
    if (strcmp(name, "fi_getinfo") == 0) {
        real_getinfo = found;
        return promise_order;
    }
    return found;
}
