// Memory that is allocated and freed without being touched costs neither pages nor more than two
// system calls, whatever its size, once the process has had so much before. A thread counts its own
// calls: a filter (seccomp) turns each into a signal, and the handler makes the call itself.

#define _GNU_SOURCE
#include "robust.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { ROUNDS = 50, MIB = 1 << 20 };

static volatile long calls;

// The one place whose system calls pass the filter.
long pass(long number, long a, long b, long c, long d, long e, long f);
extern char passed[];
__asm__(".text\n.globl pass, passed\npass:\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\n"
        "mov %r8, %r10\nmov %r9, %r8\nmov 8(%rsp), %r9\nsyscall\npassed:\nret\n");

static void count(int signal, siginfo_t *info, void *context)
{
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)signal;
    calls++;
    g[REG_RAX] = pass(info->si_syscall, g[REG_RDI], g[REG_RSI], g[REG_RDX], g[REG_R10], g[REG_R8],
                      g[REG_R9]);
}

static void watch(void)
{
    const uint64_t ip = (uint64_t)passed;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 5, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)ip, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(ip >> 32), 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO | SA_NODEFER};
    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

// Memory of the segments of this process.
static long backed(void)
{
    char path[300], name[64];
    struct dirent *entry;
    struct stat status;
    long bytes = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, name, sizeof name - 1);
        if (length > 0 && strncmp(name, "/memfd:fompi", 12) == 0 && stat(path, &status) == 0)
            bytes += status.st_blocks * 512;
    }
    closedir(folder);
    return bytes;
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

static void again_and_again(MPI_Aint bytes)
{
    char *memory;
    long most = 0, pages, before;
    OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory));
    OK(MPI_Free_mem(memory));
    pages = backed();
    before = faults();
    for (int round = 0; round < ROUNDS; round++) {
        long then = calls;
        OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory));
        OK(MPI_Free_mem(memory));
        if (calls - then > most)
            most = calls - then;
    }
    CHECK(faults() - before < ROUNDS);
    CHECK(backed() <= pages);
    if (most > 2)
        wrong(__LINE__, "%ld bytes: %ld system calls", (long)bytes, most);
}

static void *work(void *nothing)
{
    MPI_Aint sizes[] = {100, 64 << 10, MIB, 24 * MIB, 40 * MIB, 24 * MIB, 100 * MIB};
    watch();
    long then = calls;
    getppid();
    CHECK(calls == then + 1);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        again_and_again(sizes[i]);
    return nothing;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int provided;
    alarm(60);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return MPI_Finalize();
}
