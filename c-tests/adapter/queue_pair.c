// Queue pairs: their states, which a program has to walk through with all that each step needs, and
// the posting of requests.

#include "adapter.h"
#include <stdio.h>

enum {
    ACCESS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    TO_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    TO_RTR = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    TO_RTS = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
    PSN = 0xffffff
};

EXPORTED struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct ibv_qp_cap *cap = &init->cap;
    if (init->qp_type != IBV_QPT_RC || init->send_cq == NULL || init->recv_cq == NULL ||
        cap->max_send_wr > QP_WR || cap->max_recv_wr > QP_WR || cap->max_send_sge > SGE ||
        cap->max_recv_sge > SGE || cap->max_inline_data > INLINE_BYTES) {
        errno = EINVAL;
        return NULL;
    }
    if (cap->max_send_wr == 0)
        cap->max_send_wr = 1;
    struct queue_pair *qp = calloc(1, sizeof *qp);
    qp->ring = calloc(cap->max_send_wr, sizeof *qp->ring);
    qp->inline_room = calloc(cap->max_send_wr, INLINE_BYTES);
    qp->init = *init;
    qp->base = (struct ibv_qp){.context = pd->context, .qp_context = init->qp_context, .pd = pd,
                               .send_cq = init->send_cq, .recv_cq = init->recv_cq,
                               .state = IBV_QPS_RESET, .qp_type = IBV_QPT_RC};
    qp->entry = claim_qp(((struct domain *)pd)->number, &qp->base.qp_num);
    if (qp->entry == NULL) {
        free(qp->inline_room), free(qp->ring), free(qp);
        errno = ENOMEM;
        return NULL;
    }
    pthread_mutex_lock(&engine);
    add_queue(qp);
    pthread_mutex_unlock(&engine);
    return &qp->base;
}

EXPORTED int ibv_destroy_qp(struct ibv_qp *base)
{
    struct queue_pair *qp = (struct queue_pair *)base;
    pthread_mutex_lock(&engine);
    forget_queue(qp);
    release_entry(&qp->entry->process);
    pthread_mutex_unlock(&engine);
    free(qp->inline_room), free(qp->ring), free(qp);
    return 0;
}

// Whether the address says where a port of this adapter is. RoCE has GIDs, InfiniBand has LIDs.
static int is_reachable(const struct ibv_ah_attr *address)
{
    if (settings.port_down)
        return 0;
    if (settings.infiniband && !address->is_global)
        return address->dlid >= 1 && address->dlid <= settings.devices;
    return is_gid(&address->grh.dgid);
}

static int to_rtr(struct queue_pair *qp, const struct ibv_qp_attr *attr)
{
    union ibv_gid own;
    const struct ibv_ah_attr *address = &attr->ah_attr;
    if (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096 ||
        attr->max_dest_rd_atomic > settings.rd_atomic || address->port_num != 1 ||
        (!settings.infiniband && !address->is_global) ||
        (address->is_global && !gid_at(0, address->grh.sgid_index, &own)))
        return EINVAL;
    qp->is_unreachable = !is_reachable(address);
    qp->attr.ah_attr = *address;
    qp->attr.path_mtu = attr->path_mtu;
    qp->attr.dest_qp_num = attr->dest_qp_num;
    qp->attr.rq_psn = attr->rq_psn & PSN;
    qp->attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
    qp->attr.min_rnr_timer = attr->min_rnr_timer;
    qp->entry->destination = attr->dest_qp_num;
    qp->entry->rq_psn = attr->rq_psn & PSN;
    qp->entry->max_dest_rd_atomic = attr->max_dest_rd_atomic;
    return 0;
}

static int to_rts(struct queue_pair *qp, const struct ibv_qp_attr *attr)
{
    if (attr->max_rd_atomic > settings.rd_atomic)
        return EINVAL;
    qp->attr.max_rd_atomic = attr->max_rd_atomic;
    qp->attr.timeout = attr->timeout;
    qp->attr.retry_cnt = attr->retry_cnt;
    qp->attr.rnr_retry = attr->rnr_retry;
    qp->attr.sq_psn = attr->sq_psn & PSN;
    qp->entry->sq_psn = attr->sq_psn & PSN;
    return 0;
}

static void reset(struct queue_pair *qp)
{
    uint64_t posted = qp->posted;
    qp->finished = qp->retired = qp->seen = posted;
    qp->stalled_since = 0;
    memset(&qp->attr, 0, sizeof qp->attr);
}

static int step_to(struct queue_pair *qp, const struct ibv_qp_attr *attr, int mask)
{
    enum ibv_qp_state from = qp->base.state, to = attr->qp_state;
    if (to == IBV_QPS_RESET) {
        reset(qp);
    } else if (to == IBV_QPS_ERR) {
        if (from == IBV_QPS_RESET)
            return EINVAL;
    } else if (from == IBV_QPS_RESET && to == IBV_QPS_INIT && (mask & TO_INIT) == TO_INIT) {
        if (attr->port_num != 1 || attr->pkey_index != 0 || (attr->qp_access_flags & ~(ACCESS | 1)))
            return EINVAL;
        qp->attr.port_num = attr->port_num;
        qp->entry->access = attr->qp_access_flags;
    } else if (from == IBV_QPS_INIT && to == IBV_QPS_RTR && (mask & TO_RTR) == TO_RTR) {
        int error = to_rtr(qp, attr);
        if (error != 0)
            return error;
    } else if (from == IBV_QPS_RTR && to == IBV_QPS_RTS && (mask & TO_RTS) == TO_RTS) {
        int error = to_rts(qp, attr);
        if (error != 0)
            return error;
    } else {
        return EINVAL;
    }
    qp->base.state = to;
    __atomic_store_n(&qp->entry->state, to, __ATOMIC_RELEASE);
    if (to == IBV_QPS_ERR)
        flush_queue(qp);
    return 0;
}

EXPORTED int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
    struct queue_pair *qp = (struct queue_pair *)base;
    if (!(mask & IBV_QP_STATE))
        return EINVAL;
    pthread_mutex_lock(&engine);
    int error = step_to(qp, attr, mask);
    pthread_mutex_unlock(&engine);
    return error;
}

EXPORTED int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask,
                          struct ibv_qp_init_attr *init)
{
    struct queue_pair *qp = (struct queue_pair *)base;
    (void)mask;
    pthread_mutex_lock(&engine);
    *attr = qp->attr;
    // The other end may have put it into the error state.
    attr->qp_state = __atomic_load_n(&qp->entry->state, __ATOMIC_ACQUIRE);
    attr->cur_qp_state = attr->qp_state;
    attr->qp_access_flags = qp->entry->access;
    attr->cap = qp->init.cap;
    *init = qp->init;
    pthread_mutex_unlock(&engine);
    return 0;
}

// Fills in the request from the caller's; an error where a driver would refuse it.
static int take(struct queue_pair *qp, const struct ibv_send_wr *wr, struct request *request)
{
    int is_atomic = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                    wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if ((!is_atomic && wr->opcode != IBV_WR_RDMA_WRITE && wr->opcode != IBV_WR_RDMA_READ) ||
        wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_send_sge)
        return EINVAL;
    *request = (struct request){.wr_id = wr->wr_id, .opcode = (int)wr->opcode,
                                .flags = (int)wr->send_flags, .sges = (uint32_t)wr->num_sge,
                                .remote = wr->wr.rdma.remote_addr, .rkey = wr->wr.rdma.rkey};
    if (qp->init.sq_sig_all)
        request->flags |= IBV_SEND_SIGNALED;
    if (is_atomic) {
        request->remote = wr->wr.atomic.remote_addr;
        request->rkey = wr->wr.atomic.rkey;
        request->compare_add = wr->wr.atomic.compare_add;
        request->swap = wr->wr.atomic.swap;
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < request->sges; i++) {
        request->sge[i] = wr->sg_list[i];
        bytes += wr->sg_list[i].length;
    }
    request->bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
    if (is_atomic && (request->sges != 1 || bytes != 8))
        return EINVAL;
    if (!(request->flags & IBV_SEND_INLINE))
        return 0;
    if (wr->opcode != IBV_WR_RDMA_WRITE || bytes > qp->init.cap.max_inline_data)
        return EINVAL;
    size_t slot = qp->posted % qp->init.cap.max_send_wr, filled = 0;
    request->inlined = qp->inline_room + slot * INLINE_BYTES;
    for (uint32_t i = 0; i < request->sges; i++) {
        memcpy(request->inlined + filled, (void *)wr->sg_list[i].addr, wr->sg_list[i].length);
        filled += wr->sg_list[i].length;
    }
    return 0;
}

int post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct queue_pair *qp = (struct queue_pair *)base;
    int error = 0;
    pthread_mutex_lock(&engine);
    if (base->state != IBV_QPS_RTS && base->state != IBV_QPS_ERR)
        error = EINVAL;
    for (; error == 0 && wr != NULL; wr = wr->next) {
        // A place is free again only when a completion of it, or after it, was polled.
        if (qp->posted - qp->retired == qp->init.cap.max_send_wr)
            error = ENOMEM;
        else
            error = take(qp, wr, &qp->ring[qp->posted % qp->init.cap.max_send_wr]);
        if (error != 0)
            break;
        qp->posted++;
        posted(qp);
    }
    pthread_mutex_unlock(&engine);
    if (error != 0)
        *bad = wr;
    return error;
}
