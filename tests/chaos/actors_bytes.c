// The kernel copies bytes out of the zone or into it: calls that end, or wait for data.
#include "chaos.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CHUNK = 16384 };

// What a system call transfers at most, so that a pipe or a socket takes it.
static size_t chunk_of(const struct act *act)
{
    return act->bytes < CHUNK ? act->bytes : CHUNK;
}

// Sends a part of the zone by one of several calls, and compares what arrives.
static void send_once(struct act *act)
{
    unsigned char have[CHUNK];
    const size_t bytes = chunk_of(act), at = below(&act->chance, act->bytes - bytes + 1);
    struct iovec parts[2] = {{act->zone + at, bytes / 2},
                             {act->zone + at + bytes / 2, bytes - bytes / 2}};
    int fd[2];
    ssize_t sent;
    refill(act);
    const uint64_t way = below(&act->chance, 4);
    if (way < 2)
        open_pipe(act, fd);
    else
        open_pair(act, fd);
    switch (way) {
    case 0:
        sent = write(fd[1], act->zone + at, bytes);
        break;
    case 1:
        sent = writev(fd[1], parts, 2);
        break;
    case 2:
        sent = send(fd[1], act->zone + at, bytes, 0);
        break;
    default:
        sent = sendmsg(fd[1], &(struct msghdr){.msg_iov = parts, .msg_iovlen = 2}, 0);
    }
    if (sent != (ssize_t)bytes)
        fail(act, "%zd of %zu bytes were sent", sent, bytes);
    if (!read_all(fd[0], have, bytes))
        fail(act, "read");
    expect_bytes(act, have, act->want + at, bytes, "what was sent");
    close(fd[0]);
    close(fd[1]);
}

// Receives into a part of the zone.
static void receive_once(struct act *act)
{
    const size_t bytes = chunk_of(act), at = below(&act->chance, act->bytes - bytes + 1);
    struct iovec parts[2] = {{act->zone + at, bytes / 2},
                             {act->zone + at + bytes / 2, bytes - bytes / 2}};
    int fd[2];
    ssize_t got;
    const uint64_t way = below(&act->chance, 4);
    if (way < 2)
        open_pipe(act, fd);
    else
        open_pair(act, fd);
    act->version++;
    pattern(act->want + at, bytes, act->seed + act->version);
    if (!write_all(fd[1], act->want + at, bytes))
        fail(act, "write");
    switch (way) {
    case 0:
        got = read(fd[0], act->zone + at, bytes);
        break;
    case 1:
        got = readv(fd[0], parts, 2);
        break;
    case 2:
        got = recv(fd[0], act->zone + at, bytes, MSG_WAITALL);
        break;
    default:
        got = recvmsg(fd[0], &(struct msghdr){.msg_iov = parts, .msg_iovlen = 2}, MSG_WAITALL);
    }
    if (got != (ssize_t)bytes)
        fail(act, "%zd of %zu bytes were received", got, bytes);
    expect(act, "what was received");
    close(fd[0]);
    close(fd[1]);
}

// --- calls that wait ----------------------------------------------------------------------------

struct waiting {
    int fd[2];
    bool is_socket;
    size_t bytes;
    ssize_t got;
    int code;
};

static void *receive_all(void *argument)
{
    struct act *act = argument;
    struct waiting *waiting = act->state;
    size_t done = 0;
    while (done < waiting->bytes) {
        const size_t left = waiting->bytes - done;
        ssize_t got = waiting->is_socket
                          ? recv(waiting->fd[0], act->zone + done, left, MSG_WAITALL)
                          : read(waiting->fd[0], act->zone + done, left);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            waiting->code = errno;
            break;
        }
        done += (size_t)got;
    }
    waiting->got = (ssize_t)done;
    return NULL;
}

static struct waiting *open_waiting(struct act *act)
{
    struct waiting *waiting = state_of(act, sizeof *waiting);
    waiting->bytes = act->bytes;
    waiting->is_socket = percent(&act->chance, 50);
    if (waiting->is_socket)
        open_pair(act, waiting->fd);
    else
        open_pipe(act, waiting->fd);
    return waiting;
}

// A thread waits in read or recv; the data come when the act ends.
static void begin_waiting(struct act *act)
{
    open_waiting(act);
    atomic_store(&act->is_quiet, false);
    start_thread(act, receive_all);
}

static void end_waiting(struct act *act)
{
    struct waiting *waiting = act->state;
    want_next(act);
    if (!write_all(waiting->fd[1], act->want, waiting->bytes))
        fail(act, "write");
    pthread_join(act->thread, NULL);
    if (waiting->got != (ssize_t)waiting->bytes) {
        errno = waiting->code;
        fail(act, "a thread that waited received %zd of %zu bytes", waiting->got, waiting->bytes);
    }
    expect(act, "what a waiting thread received");
    atomic_store(&act->is_quiet, true);
    close(waiting->fd[0]);
    close(waiting->fd[1]);
}

static void *send_slowly(void *argument)
{
    struct act *act = argument;
    struct waiting *waiting = act->state;
    waiting->got = write_all(waiting->fd[1], act->zone, waiting->bytes);
    waiting->code = errno;
    return NULL;
}

// A thread waits in write or send, as the pipe is full.
static void begin_full(struct act *act)
{
    open_waiting(act);
    refill(act);
    start_thread(act, send_slowly);
}

static void end_full(struct act *act)
{
    struct waiting *waiting = act->state;
    unsigned char *have = malloc(waiting->bytes);
    if (!read_all(waiting->fd[0], have, waiting->bytes))
        fail(act, "read");
    pthread_join(act->thread, NULL);
    if (!waiting->got) {
        errno = waiting->code;
        fail(act, "a thread that waited could not send");
    }
    expect_bytes(act, have, act->want, waiting->bytes, "what a waiting thread sent");
    free(have);
    close(waiting->fd[0]);
    close(waiting->fd[1]);
}

// Reads a file by the page cache; random bytes of the kernel.
static void file_once(struct act *act)
{
    char path[800];
    snprintf(path, sizeof path, "%s/file.%d.%d", work_folder(), my_rank, act->index);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    refill(act);
    if (fd < 0 || pwrite(fd, act->zone, act->bytes, 0) != (ssize_t)act->bytes)
        fail(act, "pwrite to a file");
    memset(act->zone, 0, act->bytes);
    if (pread(fd, act->zone, act->bytes, 0) != (ssize_t)act->bytes)
        fail(act, "pread of a file");
    expect(act, "what a file had");
    close(fd);
}

const struct actor actors_bytes[] = {
    {"send", READS, 0, 64, NULL, NULL, send_once, NULL},
    {"receive", WRITES, UNTOUCHED, 64, NULL, NULL, receive_once, NULL},
    {"file", READS | WRITES, 0, 64, NULL, NULL, file_once, NULL},
    {"waiting-read", WRITES | THREADS, STATE_ENDS | UNTOUCHED, 64, NULL, begin_waiting, NULL,
     end_waiting},
    {"waiting-write", READS | THREADS, STATE_ENDS, 200000, NULL, begin_full, NULL, end_full},
    {NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
};
