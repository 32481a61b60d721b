// io_uring: buffers that are registered, and requests that wait.
#include "chaos.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

struct ring {
    int fd, data[2];
    unsigned char *rings;
    struct io_uring_sqe *entries;
    struct io_uring_params params;
    size_t bytes, ring_bytes, filled;
};

static bool open_ring(struct ring *ring)
{
    ring->fd = (int)syscall(SYS_io_uring_setup, 8, &ring->params);
    if (ring->fd < 0)
        return false;
    if (!(ring->params.features & IORING_FEAT_SINGLE_MMAP)) {
        close(ring->fd);
        return false;
    }
    size_t of_entries = ring->params.sq_off.array + ring->params.sq_entries * sizeof(unsigned);
    size_t of_answers = ring->params.cq_off.cqes +
                        ring->params.cq_entries * sizeof(struct io_uring_cqe);
    ring->ring_bytes = of_entries > of_answers ? of_entries : of_answers;
    ring->rings = mmap(NULL, ring->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
                       IORING_OFF_SQ_RING);
    ring->entries = mmap(NULL, ring->params.sq_entries * sizeof *ring->entries,
                         PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQES);
    return ring->rings != MAP_FAILED && (void *)ring->entries != MAP_FAILED;
}

static void close_ring(struct ring *ring)
{
    munmap(ring->entries, ring->params.sq_entries * sizeof *ring->entries);
    munmap(ring->rings, ring->ring_bytes);
    close(ring->fd);
}

static bool has_rings(void)
{
    struct ring ring = {0};
    if (!open_ring(&ring))
        return false;
    close_ring(&ring);
    return true;
}

static _Atomic unsigned *word_at(struct ring *ring, unsigned offset)
{
    return (_Atomic unsigned *)(ring->rings + offset);
}

static void submit(struct act *act, struct ring *ring, struct io_uring_sqe entry)
{
    _Atomic unsigned *tail = word_at(ring, ring->params.sq_off.tail);
    const unsigned at = atomic_load(tail), slot = at & (ring->params.sq_entries - 1);
    ring->entries[slot] = entry;
    ((unsigned *)(ring->rings + ring->params.sq_off.array))[slot] = slot;
    atomic_store(tail, at + 1);
    if (syscall(SYS_io_uring_enter, ring->fd, 1, 0, 0, NULL, 0) != 1)
        fail(act, "io_uring_enter");
}

static int answer(struct act *act, struct ring *ring)
{
    _Atomic unsigned *head = word_at(ring, ring->params.cq_off.head);
    _Atomic unsigned *tail = word_at(ring, ring->params.cq_off.tail);
    while (atomic_load(head) == atomic_load(tail)) {
        long code = syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
        if (code < 0 && errno != EINTR)
            fail(act, "io_uring_enter");
    }
    const struct io_uring_cqe *answers =
        (const struct io_uring_cqe *)(ring->rings + ring->params.cq_off.cqes);
    const int result = answers[atomic_load(head) & (ring->params.cq_entries - 1)].res;
    atomic_store(head, atomic_load(head) + 1);
    return result;
}

static struct ring *begin_ring(struct act *act, bool is_socket)
{
    struct ring *ring = state_of(act, sizeof *ring);
    if (!open_ring(ring)) {
        give_up(act); // no room for one more
        return NULL;
    }
    ring->bytes = act->bytes < 32768 ? act->bytes : 32768;
    if (is_socket)
        open_pair(act, ring->data);
    else
        open_pipe(act, ring->data);
    return ring;
}

static void end_ring(struct ring *ring)
{
    close(ring->data[0]);
    close(ring->data[1]);
    close_ring(ring);
}

// --- registered buffers -------------------------------------------------------------------------

// Whether a part of a buffer may be adopted though this kernel registers memory of one source only,
// as Linux 6.1 to 6.4 do (docs/reference/limits.md).
static bool may_be_of_two_sources(void)
{
    const char *adopt = getenv("FOMPI_ADOPT");
    struct utsname name;
    int major = 0, minor = 0;
    if (!adopt || strcmp(adopt, "always") != 0)
        return false;
    if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2)
        return false;
    return major < 6 || (major == 6 && minor < 5);
}

static void begin_registered(struct act *act)
{
    struct ring *ring = begin_ring(act, false);
    if (!ring)
        return;
    struct iovec buffer = {act->zone, act->bytes};
    if (syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS, &buffer, 1) != 0) {
        // RLIMIT_MEMLOCK; memory of a file.
        if (errno != ENOMEM && errno != EOPNOTSUPP && !(errno == EINVAL && may_be_of_two_sources()))
            fail(act, "IORING_REGISTER_BUFFERS");
        end_ring(ring);
        give_up(act);
    }
}

// Bytes arrive by the registered buffer, and leave by it.
static void use_registered(struct act *act)
{
    struct ring *ring = act->state;
    const size_t at = below(&act->chance, act->bytes - ring->bytes + 1);
    unsigned char *have = malloc(ring->bytes);
    struct io_uring_sqe entry = {.addr = (uintptr_t)act->zone + at, .len = (unsigned)ring->bytes};
    act->version++;
    pattern(act->want + at, ring->bytes, act->seed + act->version);
    if (!write_all(ring->data[1], act->want + at, ring->bytes))
        fail(act, "write");
    entry.opcode = IORING_OP_READ_FIXED;
    entry.fd = ring->data[0];
    submit(act, ring, entry);
    int got = answer(act, ring);
    if (got != (int)ring->bytes)
        fail(act, "READ_FIXED returned %d", got);
    expect(act, "READ_FIXED");
    refill(act);
    entry.opcode = IORING_OP_WRITE_FIXED;
    entry.fd = ring->data[1];
    submit(act, ring, entry);
    got = answer(act, ring);
    if (got != (int)ring->bytes || !read_all(ring->data[0], have, ring->bytes))
        fail(act, "WRITE_FIXED returned %d", got);
    expect_bytes(act, have, act->want + at, ring->bytes, "WRITE_FIXED");
    free(have);
}

static void end_registered(struct act *act)
{
    use_registered(act);
    end_ring(act->state);
}

// --- requests that wait -------------------------------------------------------------------------

static void begin_pending(struct act *act, int opcode)
{
    struct ring *ring = begin_ring(act, opcode == IORING_OP_RECV);
    if (!ring)
        return;
    atomic_store(&act->is_quiet, false);
    struct io_uring_sqe entry = {.opcode = (uint8_t)opcode, .fd = ring->data[0],
                                 .addr = (uintptr_t)act->zone, .len = (unsigned)ring->bytes};
    if (opcode == IORING_OP_RECV)
        entry.msg_flags = MSG_WAITALL;
    if (percent(&act->chance, 30))
        entry.flags = IOSQE_ASYNC; // a thread of the kernel waits, instead of a poll
    submit(act, ring, entry);
}

static void begin_pending_read(struct act *act)
{
    begin_pending(act, IORING_OP_READ);
}

static void begin_pending_receive(struct act *act)
{
    begin_pending(act, IORING_OP_RECV);
}

static void end_pending(struct act *act)
{
    struct ring *ring = act->state;
    act->version++;
    pattern(act->want, ring->bytes, act->seed + act->version);
    if (!write_all(ring->data[1], act->want, ring->bytes))
        fail(act, "write");
    int got = answer(act, ring);
    if (got != (int)ring->bytes)
        fail(act, "a request that waited returned %d", got);
    expect_bytes(act, act->zone, act->want, ring->bytes, "a request that waited");
    atomic_store(&act->is_quiet, true);
    end_ring(ring);
}

// The ring writes from the zone to a pipe that is full.
static void begin_pending_write(struct act *act)
{
    struct ring *ring = begin_ring(act, false);
    if (!ring)
        return;
    refill(act);
    const int flags = fcntl(ring->data[1], F_GETFL);
    fcntl(ring->data[1], F_SETFL, flags | O_NONBLOCK);
    while (write(ring->data[1], act->want, PAGE) > 0)
        ring->filled += PAGE;
    fcntl(ring->data[1], F_SETFL, flags);
    submit(act, ring, (struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = ring->data[1],
                                            .addr = (uintptr_t)act->zone,
                                            .len = (unsigned)ring->bytes});
}

static void end_pending_write(struct act *act)
{
    struct ring *ring = act->state;
    unsigned char *have = malloc(ring->filled + ring->bytes);
    if (!read_all(ring->data[0], have, ring->filled))
        fail(act, "read");
    const int sent = answer(act, ring); // as much as the pipe had room for
    if (sent <= 0 || !read_all(ring->data[0], have, (size_t)sent))
        fail(act, "a write that waited returned %d", sent);
    expect_bytes(act, have, act->want, (size_t)sent, "a write that waited");
    free(have);
    end_ring(ring);
}

const struct actor actors_rings[] = {
    {"uring-registered", PINS | WRITES | READS, PAGES | ANONYMOUS | ON_MAIN | NO_FORK, PAGE,
     has_rings, begin_registered, use_registered, end_registered},
    {"uring-read", WRITES, STATE_ENDS | UNTOUCHED, 64, has_rings, begin_pending_read, NULL,
     end_pending},
    {"uring-receive", WRITES, STATE_ENDS | UNTOUCHED, 64, has_rings, begin_pending_receive, NULL,
     end_pending},
    {"uring-write", READS, STATE_ENDS, PAGE, has_rings, begin_pending_write, NULL,
     end_pending_write},
    {NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
};
