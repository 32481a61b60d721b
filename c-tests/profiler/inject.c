// Lets the k-th call that libfompi.so makes of one function of libc fail. The library is linked with
// the program, in front of libc. A call by any other code, the host MPI for example, passes
// unchanged: the return address says whose call it is.
//
// A program chooses the call with inject_arm, or the environment does before the program begins:
// INJECT="FUNCTION K ERRNO", on the rank INJECT_RANK alone.

#define _GNU_SOURCE
#include "inject.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <link.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char chosen[32];
static _Atomic long countdown; // calls until the one that fails; 0 or less: none
static _Atomic long fired;
static int error_number;

// Where libfompi.so lies.
static _Atomic uintptr_t first, last;

static int look_at(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    (void)bytes, (void)unused;
    const char *name = strrchr(info->dlpi_name, '/');
    if (strcmp(name != NULL ? name + 1 : info->dlpi_name, "libfompi.so") != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        last = info->dlpi_addr + part->p_vaddr + part->p_memsz;
        first = info->dlpi_addr + part->p_vaddr;
    }
    return 1;
}

void inject_arm(const char *function, long k, int error)
{
    countdown = 0;
    snprintf(chosen, sizeof chosen, "%s", function);
    error_number = error;
    fired = 0;
    countdown = k;
}

long inject_disarm(void)
{
    countdown = 0;
    return fired;
}

__attribute__((constructor)) static void begin(void)
{
    const char *what = getenv("INJECT"), *where = getenv("INJECT_RANK"), *rank = getenv("PMI_RANK");
    char function[32];
    long k;
    int error;
    if (rank == NULL)
        rank = getenv("OMPI_COMM_WORLD_RANK");
    if (what == NULL || where == NULL || rank == NULL || strcmp(where, rank) != 0)
        return;
    if (sscanf(what, "%31s %ld %d", function, &k, &error) == 3)
        inject_arm(function, k, error);
}

// Whether this call is the one that fails.
static int fails(const char *function, const void *caller)
{
    uintptr_t address = (uintptr_t)caller;
    if (countdown <= 0 || strcmp(function, chosen) != 0)
        return 0;
    if (first == 0)
        dl_iterate_phdr(look_at, NULL);
    if (address < first || address >= last || atomic_fetch_sub(&countdown, 1) != 1)
        return 0;
    fired++;
    errno = error_number;
    return 1;
}

#define CALLER __builtin_return_address(0)

// The function after this one.
#define NEXT(name) ({ \
    static __typeof__(&name) next_; \
    if (next_ == NULL) \
        next_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
    next_; })

// A function that fails with -1 and errno.
#define WRAP(result, name, parameters, arguments) \
    result name parameters { return fails(#name, CALLER) ? (result)-1 : NEXT(name) arguments; }

WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags))
WRAP(int, ftruncate64, (int fd, off64_t bytes), (fd, bytes))
WRAP(int, fallocate, (int fd, int mode, off_t at, off_t bytes), (fd, mode, at, bytes))
WRAP(int, madvise, (void *at, size_t bytes, int advice), (at, bytes, advice))
WRAP(int, mincore, (void *at, size_t bytes, unsigned char *out), (at, bytes, out))
WRAP(int, stat64, (const char *path, struct stat64 *out), (path, out))
WRAP(int, fstat64, (int fd, struct stat64 *out), (fd, out))
WRAP(int, statx, (int at, const char *path, int flags, unsigned mask, struct statx *out),
     (at, path, flags, mask, out))
WRAP(ssize_t, readlink, (const char *path, char *out, size_t bytes), (path, out, bytes))
WRAP(ssize_t, getrandom, (void *out, size_t bytes, unsigned flags), (out, bytes, flags))
WRAP(int, socket, (int family, int type, int protocol), (family, type, protocol))
WRAP(int, bind, (int fd, const struct sockaddr *at, socklen_t bytes), (fd, at, bytes))
WRAP(int, listen, (int fd, int waiting), (fd, waiting))
WRAP(int, accept4, (int fd, struct sockaddr *from, socklen_t *bytes, int flags),
     (fd, from, bytes, flags))
WRAP(int, connect, (int fd, const struct sockaddr *to, socklen_t bytes), (fd, to, bytes))
WRAP(int, getsockname, (int fd, struct sockaddr *out, socklen_t *bytes), (fd, out, bytes))
WRAP(int, getpeername, (int fd, struct sockaddr *out, socklen_t *bytes), (fd, out, bytes))
WRAP(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t bytes),
     (fd, level, name, value, bytes))
WRAP(ssize_t, send, (int fd, const void *data, size_t bytes, int flags), (fd, data, bytes, flags))
WRAP(ssize_t, recv, (int fd, void *data, size_t bytes, int flags), (fd, data, bytes, flags))
WRAP(ssize_t, read, (int fd, void *data, size_t bytes), (fd, data, bytes))
WRAP(int, poll, (struct pollfd *fds, nfds_t count, int ms), (fds, count, ms))
WRAP(int, ppoll, (struct pollfd *fds, nfds_t count, const struct timespec *most, const sigset_t *set),
     (fds, count, most, set))
WRAP(int, socketpair, (int family, int type, int protocol, int ends[2]),
     (family, type, protocol, ends))
WRAP(int, getsockopt, (int fd, int level, int name, void *out, socklen_t *bytes),
     (fd, level, name, out, bytes))
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
WRAP(int, epoll_create1, (int flags), (flags))
WRAP(int, epoll_wait, (int fd, struct epoll_event *events, int most, int ms), (fd, events, most, ms))
WRAP(int, eventfd, (unsigned count, int flags), (count, flags))
WRAP(int, timerfd_create, (int clock, int flags), (clock, flags))
WRAP(int, getifaddrs, (struct ifaddrs **out), (out))
WRAP(ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec *here, unsigned long heres, const struct iovec *there,
      unsigned long theres, unsigned long flags),
     (pid, here, heres, there, theres, flags))
WRAP(ssize_t, process_vm_writev,
     (pid_t pid, const struct iovec *here, unsigned long heres, const struct iovec *there,
      unsigned long theres, unsigned long flags),
     (pid, here, heres, there, theres, flags))

// Functions whose last parameters vary, or that say an error in another way.

void *mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset)
{
    return fails("mmap", CALLER) ? (void *)-1 : NEXT(mmap)(at, bytes, access, flags, fd, offset);
}

int open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return fails("open64", CALLER) ? -1 : NEXT(open64)(path, flags, mode);
}

int prctl(int option, ...)
{
    int (*next)(int, ...) = (int (*)(int, ...))dlsym(RTLD_NEXT, "prctl");
    unsigned long word[4];
    va_list rest;
    va_start(rest, option);
    for (int i = 0; i < 4; i++)
        word[i] = va_arg(rest, unsigned long);
    va_end(rest);
    return fails("prctl", CALLER) ? -1 : next(option, word[0], word[1], word[2], word[3]);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
                   void *argument)
{
    // The library passes on threads of the MPI, too: its own ones begin in the library. One that it
    // passes on, or makes, begins there with the start routine as the first word of the argument.
    if (first == 0)
        dl_iterate_phdr(look_at, NULL);
    uintptr_t start = (uintptr_t)work;
    if (start >= first && start < last)
        start = *(uintptr_t *)argument;
    if (fails("pthread_create", (const void *)start))
        return error_number;
    return NEXT(pthread_create)(thread, attributes, work, argument);
}

// Only what is added to a set needs memory.
int epoll_ctl(int set, int operation, int fd, struct epoll_event *event)
{
    const char *name = operation == EPOLL_CTL_ADD ? "epoll_ctl" : "";
    return fails(name, CALLER) ? -1 : NEXT(epoll_ctl)(set, operation, fd, event);
}

// Only a copy of a descriptor needs a number.
int fcntl(int fd, int command, ...)
{
    int (*next)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
    const char *name = command == F_DUPFD_CLOEXEC ? "fcntl" : "";
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return fails(name, CALLER) ? -1 : next(fd, command, argument);
}

int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set)
{
    if (fails("pthread_setaffinity_np", CALLER))
        return error_number;
    return NEXT(pthread_setaffinity_np)(thread, bytes, set);
}

// Whether this operation of futex waits.
static int waits(int operation)
{
    int command = operation & FUTEX_CMD_MASK;
    return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
}

long syscall(long number, ...)
{
    long word[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        word[i] = va_arg(rest, long);
    va_end(rest);
    const char *name = "";
    if (number == SYS_pidfd_open)
        name = "pidfd_open";
    // The kernel interrupts a wait; it never refuses to wake another thread.
    else if (number == SYS_futex && waits((int)word[1]))
        name = "futex";
    if (fails(name, CALLER))
        return -1;
    return NEXT(syscall)(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}
