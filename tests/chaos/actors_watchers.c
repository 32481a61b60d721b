// The program's own userfaultfd over the zone.
#include "chaos.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

// `mode`: UFFD_USER_MODE_ONLY, or 0 to be told of the kernel's accesses, too.
static int open_watcher(uint64_t features, int mode)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | mode);
    struct uffdio_api api = {.api = UFFD_API, .features = features};
    if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool has_write_protection(void)
{
    int fd = open_watcher(UFFD_FEATURE_PAGEFAULT_FLAG_WP, UFFD_USER_MODE_ONLY);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool has_watchers(void)
{
    int fd = open_watcher(0, UFFD_USER_MODE_ONLY);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

struct watcher {
    int fd;
    struct uffdio_range range;
    size_t at;
    unsigned char byte;
    bool is_full; // told of the kernel's accesses
};

static struct watcher *begin_watcher(struct act *act, uint64_t features, uint64_t mode)
{
    struct watcher *watcher = state_of(act, sizeof *watcher);
    // Users without privileges need vm.unprivileged_userfaultfd for it.
    watcher->fd = percent(&act->chance, 60) ? open_watcher(features, 0) : -1;
    watcher->is_full = watcher->fd >= 0;
    if (watcher->fd < 0)
        watcher->fd = open_watcher(features, UFFD_USER_MODE_ONLY);
    if (watcher->fd < 0)
        fail(act, "userfaultfd");
    watcher->range = (struct uffdio_range){(uintptr_t)act->zone, act->bytes};
    struct uffdio_register registration = {.range = watcher->range, .mode = mode};
    if (ioctl(watcher->fd, UFFDIO_REGISTER, &registration) != 0)
        fail(act, "UFFDIO_REGISTER");
    return watcher;
}

static void begin_stores(struct act *act)
{
    refill(act);
    struct watcher *watcher =
        begin_watcher(act, UFFD_FEATURE_PAGEFAULT_FLAG_WP, UFFDIO_REGISTER_MODE_WP);
    struct uffdio_writeprotect nothing = {.range = watcher->range};
    if (ioctl(watcher->fd, UFFDIO_WRITEPROTECT, &nothing) != 0 && errno == ENOENT) {
        ioctl(watcher->fd, UFFDIO_UNREGISTER, &watcher->range);
        close(watcher->fd);
        give_up(act); // Linux 6.1 wants one mapping
    }
}

// By the kernel.
static void pass_byte(struct act *act, const unsigned char *from, unsigned char *to)
{
    int fd[2];
    open_pipe(act, fd);
    if (!write_all(fd[1], from, 1) || !read_all(fd[0], to, 1))
        fail(act, "a system call on watched pages");
    close(fd[0]);
    close(fd[1]);
}

static void *store_byte(void *argument)
{
    struct act *act = argument;
    const struct watcher *watcher = act->state;
    if (watcher->is_full)
        pass_byte(act, &watcher->byte, act->zone + watcher->at);
    else
        *(volatile unsigned char *)(act->zone + watcher->at) = watcher->byte;
    return NULL;
}

static void *load_byte(void *argument)
{
    struct act *act = argument;
    struct watcher *watcher = act->state;
    if (watcher->is_full)
        pass_byte(act, act->zone + watcher->at, &watcher->byte);
    else
        watcher->byte = *(volatile unsigned char *)(act->zone + watcher->at);
    return NULL;
}

// Waits for the notice of a fault in the page.
static void await_fault(struct act *act)
{
    const struct watcher *watcher = act->state;
    struct pollfd ready = {.fd = watcher->fd, .events = POLLIN};
    struct uffd_msg message;
    int code;
    do
        code = poll(&ready, 1, 20000);
    while (code < 0 && errno == EINTR);
    if (code != 1 || read(watcher->fd, &message, sizeof message) != sizeof message)
        fail(act, "the program's userfaultfd tells of no fault");
    const uintptr_t page = ((uintptr_t)act->zone + watcher->at) / PAGE * PAGE;
    if (message.event != UFFD_EVENT_PAGEFAULT ||
        message.arg.pagefault.address / PAGE * PAGE != page)
        fail(act, "the program's userfaultfd tells of another fault");
}

static void protect(struct act *act, uint64_t mode)
{
    const struct watcher *watcher = act->state;
    struct uffdio_writeprotect change = {.range = watcher->range, .mode = mode};
    if (ioctl(watcher->fd, UFFDIO_WRITEPROTECT, &change) != 0)
        fail(act, "UFFDIO_WRITEPROTECT");
}

static void watch_store(struct act *act)
{
    struct watcher *watcher = act->state;
    watcher->at = below(&act->chance, act->bytes);
    watcher->byte = (unsigned char)below(&act->chance, 256);
    protect(act, UFFDIO_WRITEPROTECT_MODE_WP);
    start_thread(act, store_byte);
    await_fault(act);
    protect(act, 0);
    pthread_join(act->thread, NULL);
    act->want[watcher->at] = watcher->byte;
    expect(act, "under a userfaultfd of the program");
}

static void end_stores(struct act *act)
{
    struct watcher *watcher = act->state;
    watch_store(act);
    if (ioctl(watcher->fd, UFFDIO_UNREGISTER, &watcher->range) != 0)
        fail(act, "UFFDIO_UNREGISTER");
    close(watcher->fd);
}

static void begin_missing(struct act *act)
{
    if (madvise(act->zone, act->bytes, MADV_DONTNEED) != 0) {
        give_up(act); // locked memory
        return;
    }
    begin_watcher(act, 0, UFFDIO_REGISTER_MODE_MISSING);
    atomic_store(&act->is_quiet, false);
}

// A page is read first when the act ends: the program gives it bytes.
static void end_missing(struct act *act)
{
    struct watcher *watcher = act->state;
    unsigned char *page = aligned_alloc(PAGE, PAGE);
    watcher->at = below(&act->chance, act->bytes);
    const size_t first = watcher->at / PAGE * PAGE;
    memset(act->want, 0, act->bytes);
    act->version++;
    pattern(page, PAGE, act->seed + act->version);
    memcpy(act->want + first, page, PAGE);
    start_thread(act, load_byte);
    await_fault(act);
    struct uffdio_copy copy = {.dst = (uintptr_t)act->zone + first, .src = (uintptr_t)page,
                               .len = PAGE};
    if (ioctl(watcher->fd, UFFDIO_COPY, &copy) != 0)
        fail(act, "UFFDIO_COPY");
    pthread_join(act->thread, NULL);
    if (watcher->byte != act->want[watcher->at])
        fail(act, "a thread has read %02x for %02x", watcher->byte, act->want[watcher->at]);
    if (ioctl(watcher->fd, UFFDIO_UNREGISTER, &watcher->range) != 0)
        fail(act, "UFFDIO_UNREGISTER");
    close(watcher->fd);
    expect(act, "under a userfaultfd of the program");
    atomic_store(&act->is_quiet, true);
    free(page);
}

enum { WATCHED = PAGES | ANONYMOUS | STATE_ENDS | ON_MAIN | NO_FORK };

const struct actor actors_watchers[] = {
    {"userfaultfd-stores", RIGHTS, WATCHED, PAGE, has_write_protection, begin_stores, watch_store,
     end_stores},
    {"userfaultfd-missing", RIGHTS, WATCHED | SINGLE, PAGE, has_watchers, begin_missing, NULL,
     end_missing},
    {NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
};
