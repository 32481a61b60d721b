// Lets MPICH before 4.2 on UCX end between nodes: scripts/dev/cluster preloads it there.
//
// MPI_Finalize disconnects its UCX endpoints and then waits in a blocking read from the launcher's
// socket without progressing UCX. A process whose disconnect still needs an answer waits forever
// (MPICH pull request 6596). This turns that read into "progress UCX until there is something to
// read", and does nothing before the first disconnect.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORKERS_MAX = 64 };

static void *workers[WORKERS_MAX];
static int worker_count, is_closing;
static pthread_t closer;

// A program that loads its MPI by dlopen has UCX in no scope that is searched after this library.
static void *next_of(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    void *ucp = found == NULL ? dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return ucp == NULL ? found : dlsym(ucp, name);
}

int ucp_worker_create(void *context, const void *parameters, void **worker)
{
    int (*next)(void *, const void *, void **) = next_of("ucp_worker_create");
    int status = next(context, parameters, worker);
    if (status == 0 && worker_count < WORKERS_MAX)
        workers[worker_count++] = *worker;
    return status;
}

void ucp_worker_destroy(void *worker)
{
    void (*next)(void *) = next_of("ucp_worker_destroy");
    for (int i = 0; i < worker_count; i++)
        if (workers[i] == worker)
            workers[i--] = workers[--worker_count];
    next(worker);
}

void *ucp_disconnect_nb(void *endpoint)
{
    void *(*next)(void *) = next_of("ucp_disconnect_nb");
    closer = pthread_self();
    is_closing = 1;
    return next(endpoint);
}

static void progress_until_readable(int fd)
{
    unsigned (*progress)(void *) = next_of("ucp_worker_progress");
    struct pollfd readable = {fd, POLLIN, 0};
    while (progress != NULL && poll(&readable, 1, 0) == 0) {
        for (int i = 0; i < worker_count; i++)
            progress(workers[i]);
        sched_yield();
    }
}

ssize_t read(int fd, void *buffer, size_t bytes)
{
    static __thread int is_nested;
    if (is_closing && worker_count > 0 && !is_nested && pthread_equal(closer, pthread_self()) &&
        !(fcntl(fd, F_GETFL) & O_NONBLOCK)) {
        is_nested = 1;
        progress_until_readable(fd);
        is_nested = 0;
    }
    return syscall(SYS_read, fd, buffer, bytes);
}
