// Starts a program to which the system refuses some calls, by a seccomp filter, as old kernels and
// the profiles of containers do. usage: deny CALL=ERRNO... -- PROGRAM [ARGUMENT]...
//   CALL    the name of a system call (below), or its number
//   ERRNO   the name of an error (below), or its number
// With CALL=ERRNO@RANK only the process of that rank is refused the call: the launcher says which
// one this is. What the program starts inherits the refusals. Not for filters that count: a
// program that changes its own mind about a call, as `denied` does, has its own.

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "which architecture is this to seccomp?"
#endif

struct named {
    const char *name;
    long number;
};

static const struct named calls[] = {
    {"clone3", SYS_clone3},
    {"close_range", 436},
    {"fallocate", SYS_fallocate},
    {"fcntl", SYS_fcntl},
    {"ftruncate", SYS_ftruncate},
    {"futex", SYS_futex},
    {"getrlimit", SYS_getrlimit},
    {"kill", SYS_kill},
    {"madvise", SYS_madvise},
    {"membarrier", SYS_membarrier},
    {"memfd_create", SYS_memfd_create},
    {"mmap", SYS_mmap},
    {"mprotect", SYS_mprotect},
    {"munmap", SYS_munmap},
    {"openat", SYS_openat},
    {"pidfd_open", SYS_pidfd_open},
    {"pidfd_send_signal", SYS_pidfd_send_signal},
    {"ppoll", SYS_ppoll},
    {"prctl", SYS_prctl},
    {"process_vm_readv", SYS_process_vm_readv},
    {"process_vm_writev", SYS_process_vm_writev},
    {"socket", SYS_socket},
};

static const struct named errors[] = {
    {"EACCES", EACCES}, {"EAGAIN", EAGAIN}, {"EFAULT", EFAULT}, {"EINTR", EINTR},
    {"EINVAL", EINVAL}, {"EMFILE", EMFILE}, {"ENFILE", ENFILE}, {"ENOMEM", ENOMEM},
    {"ENOSPC", ENOSPC}, {"ENOSYS", ENOSYS}, {"EOPNOTSUPP", EOPNOTSUPP}, {"EPERM", EPERM},
};

enum { RULES_MAX = 32 };
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void usage(const char *what, const char *word)
{
    fprintf(stderr, "deny: %s: %s\nusage: deny CALL=ERRNO[@RANK]... -- PROGRAM [ARGUMENT]...\n",
            what, word);
    exit(2);
}

static long number_of(const struct named *list, size_t count, const char *what, const char *word)
{
    char *end;
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, word) == 0)
            return list[i].number;
    long number = strtol(word, &end, 10);
    if (*word == 0 || *end != 0)
        usage(what, word);
    return number;
}

// The rank in MPI_COMM_WORLD, as the launchers tell it.
static long own_rank(void)
{
    const char *names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (getenv(names[i]) != NULL)
            return atol(getenv(names[i]));
    return -1;
}

// Adds what CALL=ERRNO[@RANK] means to a filter; the number of its statements.
static size_t add(struct sock_filter *to, char *rule)
{
    char *error = strchr(rule, '='), *rank = strchr(rule, '@');
    if (error == NULL)
        usage("not CALL=ERRNO", rule);
    *error++ = 0;
    if (rank != NULL)
        *rank++ = 0;
    long call = number_of(calls, COUNT(calls), "no such call here", rule);
    long answer = number_of(errors, COUNT(errors), "no such error here", error);
    if (rank != NULL && atol(rank) != own_rank())
        return 0;
    to[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1);
    to[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)answer);
    return 2;
}

int main(int argc, char **argv)
{
    struct sock_filter filter[5 + 2 * RULES_MAX] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    size_t length = 4;
    int at = 1;
    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        if (at > RULES_MAX)
            usage("too many rules", argv[at]);
        length += add(filter + length, argv[at]);
    }
    if (at + 1 >= argc)
        usage("no program", "");
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("deny: seccomp");
        return 3;
    }
    execvp(argv[at + 1], argv + at + 1);
    perror("deny: exec");
    return 127;
}
