// What the files of the software adapter share: the registry, a mapped file by which the processes
// of a machine find each other's queue pairs and keys, and the objects of one process.
//
// Locks, always taken in this order: `engine` (a process's own queues), the guard of a key, the
// registry's `atomics`, a process's mailbox. `table` is taken alone or after `engine`.

#ifndef ADAPTER_H
#define ADAPTER_H

#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

// In verbs.h these are macros over functions, which are ours to define.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define EXPORTED __attribute__((visibility("default")))

enum { PROCESSES = 1024, QP_BITS = 14, KEY_BITS = 15, DEVICES = 2, SGE = 8, INLINE_BYTES = 256 };
enum { QPS = 1 << QP_BITS, KEYS = 1 << KEY_BITS, QP_WR = 4096, CQES = 65536, GIDS = 4 };

// A request that another process's agent executes: only where atomics are coherent with the CPU.
enum errand_state { ERRAND_NONE, ERRAND_ASKED, ERRAND_DONE };
struct errand {
    pthread_mutex_t mailbox;
    uint32_t state; // a futex
    uint32_t opcode;
    uint64_t address, compare_add, swap, answer;
};

struct process_entry {
    pid_t pid; // 0: free
    uint64_t born;
    void *pulse; // can be read as long as the process lives
    struct errand errand;
};

struct qp_entry {
    uint32_t generation, process, pd; // process: index + 1, 0: free
    uint32_t state, destination, access, sq_psn, rq_psn, max_dest_rd_atomic;
};

struct key_entry {
    pthread_mutex_t guard; // held while bytes move, so that deregistering waits for them
    uint32_t generation, process, pd, access;
    uint64_t address, iova, bytes;
};

struct registry {
    uint32_t version, pds, qp_hint, key_hint;
    pthread_mutex_t table, atomics;
    struct process_entry processes[PROCESSES];
    struct qp_entry qps[QPS];
    struct key_entry keys[KEYS];
};

// What a queue pair keeps in order: what reliable connections promise, WRITEs and atomics among
// each other alone, or nothing. The part number of the device says which.
enum order { ORDER_VERBS, ORDER_WAW, ORDER_NONE };
enum { VENDOR = 0x02666f6d };

struct settings {
    enum order order;
    int prompt, whole, glob, infiniband, port_down, overtake_atomics;
    unsigned devices, rd_atomic;
    uint32_t message_bytes_max;
    uint64_t seed, retry_ns, cut_after, fatal_after, memlock_bytes;
};

struct request {
    uint64_t wr_id, remote, compare_add, swap;
    uint32_t rkey, bytes, sges;
    int opcode, flags, is_done;
    struct ibv_sge sge[SGE];
    unsigned char *inlined;
};

// The send queue's requests are numbered from 0 on: those before `retired` have left their places,
// those before `finished` have completed, those before `undone` have taken effect, those before
// `posted` are there. `seen` is where the thread's last check found `posted`.
struct queue_pair {
    struct ibv_qp base;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct qp_entry *entry;
    struct request *ring;
    unsigned char *inline_room;
    uint64_t posted, finished, undone, retired, seen, stalled_since;
    int is_unreachable;
    struct queue_pair *next;
};

struct completion {
    struct ibv_wc wc;
    struct queue_pair *qp;
    uint64_t number;
};

struct completion_queue {
    struct ibv_cq base;
    struct completion *ring;
    uint64_t pushed, polled;
    int is_armed;
};

struct memory_region {
    struct ibv_mr base;
    struct key_entry *entry;
};

struct domain {
    struct ibv_pd base;
    uint32_t number;
};

extern struct settings settings;
extern struct registry *registry;
extern uint32_t my_process; // index + 1

// registry.c
void read_settings(void);
int join_registry(void);
void lock(pthread_mutex_t *mutex);
struct qp_entry *claim_qp(uint32_t pd, uint32_t *number);
struct key_entry *claim_key(uint32_t pd, uint32_t *key);
struct qp_entry *qp_of(uint32_t number);
struct key_entry *key_of(uint32_t key);
void release_entry(uint32_t *process);

// memory.c
enum { RKEY = 0x80000000 }; // set in remote keys, so that nobody takes one key for the other
int execute(struct queue_pair *qp, struct request *request);
enum { UNREACHABLE = -1 };
void start_agent(void);

// engine.c
extern pthread_mutex_t engine;
uint64_t now_ns(void);
unsigned chance(unsigned of);
void posted(struct queue_pair *qp);
void flush_queue(struct queue_pair *qp);
void forget_queue(struct queue_pair *qp);
int poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
int arm_cq(struct ibv_cq *cq, int solicited_only);
void add_queue(struct queue_pair *qp);

// queue_pair.c
int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int is_gid(const union ibv_gid *gid);
int gid_at(unsigned device, int index, union ibv_gid *gid);

#endif
