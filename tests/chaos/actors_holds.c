// The kernel holds references to pages of the zone, and copies no bytes meanwhile.
#include "chaos.h"
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SO_ZEROCOPY
#define SO_ZEROCOPY 60
#endif
#ifndef MSG_ZEROCOPY
#define MSG_ZEROCOPY 0x4000000
#endif

struct held {
    int fd[2];
    size_t bytes;
};

// The pages lie in a pipe. What the program stores afterwards is what the pipe's reader gets.
static void begin_vmsplice(struct act *act)
{
    struct held *held = state_of(act, sizeof *held);
    refill(act);
    open_pipe(act, held->fd);
    fcntl(held->fd[1], F_SETFL, O_NONBLOCK);
    held->bytes = act->bytes < 8 * PAGE ? act->bytes : 8 * PAGE;
    struct iovec part = {act->zone, held->bytes};
    const unsigned flags = percent(&act->chance, 30) ? SPLICE_F_GIFT : 0;
    ssize_t given = vmsplice(held->fd[1], &part, 1, flags);
    if (given < PAGE)
        fail(act, "vmsplice gave %zd bytes", given);
    held->bytes = (size_t)given;
}

static void store_under_holder(struct act *act)
{
    refill(act);
}

static void end_vmsplice(struct act *act)
{
    struct held *held = act->state;
    unsigned char have[8 * PAGE];
    refill(act);
    if (!read_all(held->fd[0], have, held->bytes))
        fail(act, "read");
    expect_bytes(act, have, act->want, held->bytes, "the holder of the pages");
    close(held->fd[0]);
    close(held->fd[1]);
}

// --- tee, splice --------------------------------------------------------------------------------

// The pages go from one pipe to another one and to a file.
static void splice_once(struct act *act)
{
    unsigned char have[4 * PAGE];
    int one[2], other[2];
    const size_t bytes = act->bytes < sizeof have ? act->bytes : sizeof have;
    open_pipe(act, one);
    open_pipe(act, other);
    refill(act);
    struct iovec part = {act->zone, bytes};
    if (vmsplice(one[1], &part, 1, 0) != (ssize_t)bytes)
        fail(act, "vmsplice");
    if (splice(one[0], NULL, other[1], NULL, bytes, 0) != (ssize_t)bytes)
        fail(act, "splice");
    if (!read_all(other[0], have, bytes))
        fail(act, "read");
    expect_bytes(act, have, act->want, bytes, "vmsplice, splice, read");
    // And the other way: vmsplice copies from a pipe to the zone.
    want_next(act);
    if (!write_all(one[1], act->want, bytes))
        fail(act, "write");
    memcpy(act->zone + bytes, act->want + bytes, act->bytes - bytes);
    part.iov_len = bytes;
    if (vmsplice(one[0], &part, 1, 0) != (ssize_t)bytes)
        fail(act, "vmsplice into the zone");
    expect(act, "vmsplice into the zone");
    close(one[0]);
    close(one[1]);
    close(other[0]);
    close(other[1]);
}

// --- MSG_ZEROCOPY -------------------------------------------------------------------------------

static bool connect_tcp(int fd[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int one = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
    bool good = listening >= 0 && bind(listening, (struct sockaddr *)&at, sizeof at) == 0 &&
                listen(listening, 1) == 0 &&
                getsockname(listening, (struct sockaddr *)&at, &length) == 0;
    fd[1] = good ? socket(AF_INET, SOCK_STREAM, 0) : -1;
    good = good && setsockopt(fd[1], SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) == 0 &&
           connect(fd[1], (struct sockaddr *)&at, sizeof at) == 0;
    fd[0] = good ? accept(listening, NULL, NULL) : -1;
    if (listening >= 0)
        close(listening);
    if (fd[0] < 0 && fd[1] >= 0)
        close(fd[1]);
    return fd[0] >= 0;
}

static bool has_zero_copy(void)
{
    int fd[2];
    if (!connect_tcp(fd))
        return false;
    close(fd[0]);
    close(fd[1]);
    return true;
}

static void begin_zero_copy(struct act *act)
{
    struct held *held = state_of(act, sizeof *held);
    refill(act);
    if (!connect_tcp(held->fd)) {
        give_up(act);
        return;
    }
    held->bytes = act->bytes < 8 * PAGE ? act->bytes : 8 * PAGE;
    ssize_t sent = send(held->fd[1], act->zone, held->bytes, MSG_ZEROCOPY);
    if (sent < 0 && errno == ENOBUFS) {
        close(held->fd[0]);
        close(held->fd[1]);
        give_up(act);
        return;
    }
    if (sent <= 0)
        fail(act, "send (MSG_ZEROCOPY)");
    held->bytes = (size_t)sent;
}

static void end_zero_copy(struct act *act)
{
    struct held *held = act->state;
    unsigned char have[8 * PAGE], control[128];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    struct pollfd ready = {.fd = held->fd[1]};
    if (!read_all(held->fd[0], have, held->bytes))
        fail(act, "read");
    expect_bytes(act, have, act->want, held->bytes, "send (MSG_ZEROCOPY)");
    if (poll(&ready, 1, 5000) != 1 || recvmsg(held->fd[1], &message, MSG_ERRQUEUE) < 0)
        fail(act, "no notice that the pages are free");
    close(held->fd[0]);
    close(held->fd[1]);
}

enum { HELD = PAGES | ANONYMOUS | TOUCHED | NO_FORK };

const struct actor actors_holds[] = {
    {"vmsplice", HOLDS, HELD | STATE_ENDS | ON_MAIN, PAGE, NULL, begin_vmsplice, store_under_holder,
     end_vmsplice},
    {"splice", HOLDS | READS | WRITES, PAGES, PAGE, NULL, NULL, splice_once, NULL},
    {"send-zerocopy", HOLDS | READS, HELD | STATE_ENDS, PAGE, has_zero_copy, begin_zero_copy, NULL,
     end_zero_copy},
    {NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
};
