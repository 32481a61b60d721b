/* Cost of registration and deregistration of memory for an RDMA device, compared with a copy of as
 * many bytes: the median of many, in ns, and the quotient. `cold` walks through 64 MiB, so that the
 * caches have the bytes of none. On an emulated machine both are slow, and not equally: there
 * GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1000000000 gives copies their due.
 *
 *     cc -O2 benches/registration.c -o registration -libverbs && ./registration
 *
 * With the argument `pin` it asks no device: io_uring keeps the pages in place, which is what every
 * registration does before the adapter hears of it, and what one costs at least on this machine. */
#include <infiniband/verbs.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { LEAST = 8 << 10, MOST = 1 << 20, ALL = 64 << 20, TIMES = 201 };

static struct ibv_pd *domain;
static int ring = -1;
static char *memory, *copy;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void give_up(const char *what) {
    perror(what);
    exit(1);
}

static void keep(char *at, size_t bytes) {
    if (ring >= 0) {
        struct iovec piece = {at, bytes};
        if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &piece, 1))
            give_up("IORING_REGISTER_BUFFERS");
        if (syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0))
            give_up("IORING_UNREGISTER_BUFFERS");
        return;
    }
    struct ibv_mr *region = ibv_reg_mr(domain, at, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!region) give_up("ibv_reg_mr");
    ibv_dereg_mr(region);
}

static int in_order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(size_t bytes, int is_copy, int is_cold) {
    static double times[TIMES];
    size_t at = 0;
    for (int i = 0; i < TIMES; i++, at = is_cold ? (at + bytes) % ALL : 0) {
        double start = now();
        if (is_copy) memcpy(copy, memory + at, bytes);
        else keep(memory + at, bytes);
        __asm__ volatile("" ::: "memory");
        times[i] = now() - start;
    }
    qsort(times, TIMES, sizeof *times, in_order);
    return times[TIMES / 2];
}

int main(int argc, char **argv) {
    memory = aligned_alloc(4096, ALL);
    copy = aligned_alloc(4096, MOST);
    memset(memory, 1, ALL);
    memset(copy, 1, MOST);
    if (argc > 1 && strcmp(argv[1], "pin") == 0) {
        struct io_uring_params settings = {0};
        ring = (int)syscall(SYS_io_uring_setup, 1, &settings);
        if (ring < 0) give_up("io_uring_setup");
    } else {
        struct ibv_device **devices = ibv_get_device_list(NULL);
        struct ibv_context *device = devices && *devices ? ibv_open_device(*devices) : NULL;
        domain = device ? ibv_alloc_pd(device) : NULL;
        if (!domain) give_up("an RDMA device");
    }
    printf("%8s %10s %10s %6s %10s %10s %6s\n", "bytes", "warm: reg", "copy", "x", "cold: reg",
           "copy", "x");
    for (size_t bytes = LEAST; bytes <= MOST; bytes *= 2) {
        double warm = median(bytes, 0, 0), warm_copy = median(bytes, 1, 0);
        double cold = median(bytes, 0, 1), cold_copy = median(bytes, 1, 1);
        printf("%8zu %10.0f %10.0f %6.1f %10.0f %10.0f %6.1f\n", bytes, warm, warm_copy,
               warm / warm_copy, cold, cold_copy, cold / cold_copy);
    }
    return 0;
}
