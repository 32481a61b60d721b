// First contact is made while strangers call: some say nothing, some a byte now and then, some end
// at once or half, and thousands talk nonsense. None of them is answered, and what they cost is
// bounded: descriptors, memory, and the time of the thread that listens. Where no descriptor is
// left, that thread does not spin, and a process that connects then is served when there is one
// again. A stranger calls over the loopback only, at ports that this job opened. The plain MPI has
// no such port. MPI-4.1 sections 12.5.4 and 12.7.3.
// ranks: 2 6

#define _GNU_SOURCE
#include "../../include/fompi.h"
#include "check.h"
#include "heap.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

// Of each kind so many callers at a time; nonsense is talked so often before contact is made.
enum { SILENT = 300, SLOW = 200, HALF = 40, LOUD = 40, NONSENSE = 3000 };
enum { PORTS_MAX = 1024, GREETING = 48, HEAP_MORE = 64 << 10, HEAP_CONTACT = 5 << 10 };
// Nanoseconds of a core in half a second without a free descriptor.
enum { SPENT_MAX = 20000000, NUMBERS = 128 };

static int (*get_counts)(fompi_verbs_counts *);
static int ports[PORTS_MAX], ports_count;
static volatile int is_over, answers;
static volatile long calls;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static void pause_ms(int milliseconds)
{
    poll(NULL, 0, milliseconds);
}

// Sockets in use; with `inode` whether one of them is that.
static int sockets(const char *inode)
{
    char path[300], name[64], wanted[64];
    int count = 0, found = 0;
    DIR *folder = opendir("/proc/self/fd");
    snprintf(wanted, sizeof wanted, "socket:[%s]", inode);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        const ssize_t length = readlink(path, name, sizeof name - 1);
        name[length < 0 ? 0 : length] = 0;
        count += strncmp(name, "socket:", 7) == 0;
        found |= strcmp(name, wanted) == 0;
    }
    closedir(folder);
    return *inode == 0 ? count : found;
}

// The ports at which this process listens, those of the loopback alone as negative numbers; how many.
static int listening(int *found)
{
    const char *loopback[] = {"0100007F", "00000000000000000000000001000000"};
    const char *tables[] = {"/proc/self/net/tcp", "/proc/self/net/tcp6"};
    int count = 0;
    for (int i = 0; i < 2; i++) {
        char line[400], inode[32], address[40];
        unsigned port, state;
        FILE *table = fopen(tables[i], "r");
        while (table != NULL && fgets(line, sizeof line, table) != NULL)
            if (sscanf(line, " %*d: %39[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*d %*d %31s",
                       address, &port, &state, inode) == 4 && state == 0x0a && sockets(inode))
                found[count++ % 64] = strcmp(address, loopback[i]) ? (int)port : -(int)port;
        if (table != NULL)
            fclose(table);
    }
    return count;
}

// A call at the i-th port, without waiting for it; -1 if there is none.
static int call_at(int i)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(ports[i % ports_count])};
    const struct linger at_once = {1, 0};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    calls++;
    return fd;
}

// Whether a call has ended. Nobody answers a stranger.
static int has_ended(int fd)
{
    char byte;
    const ssize_t count = recv(fd, &byte, 1, MSG_DONTWAIT);
    answers |= count > 0;
    return count >= 0 || (errno != EAGAIN && errno != EINTR && errno != ENOTCONN);
}

// A kind of stranger: how many at a time, what one says at first, and how much of it each time.
struct kind {
    int count, first, more, half;
    const char *said;
};

// The first eight bytes are a greeting's.
static const char nonsense[GREETING + 1] = "1h-ipmof and nonsense behind it, of the length.";
static const struct kind kinds[] = {
    {SILENT, 0, 0, 0, nonsense},
    {SLOW, 1, 1, 0, nonsense},
    {HALF, 20, 0, 1, nonsense},
    {LOUD, GREETING, 0, 0, nonsense},
    {LOUD, GREETING, 0, 0, "GET / HTTP/1.1\r\nHost: somewhere-else.example.org\r\n\r\n"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void *be_strange(void *argument)
{
    const struct kind *kind = argument;
    int fds[SILENT], said[SILENT];
    for (int i = 0; i < kind->count; i++)
        fds[i] = -1;
    for (int round = 0; !is_over; round++) {
        for (int i = 0; i < kind->count && !is_over; i++) {
            if (fds[i] >= 0 && has_ended(fds[i])) {
                close(fds[i]);
                fds[i] = -1;
            }
            if (fds[i] < 0) {
                fds[i] = call_at(i + round);
                said[i] = 0;
            }
            const int more = said[i] == 0 ? kind->first : kind->more;
            if (fds[i] >= 0 && more > 0 && said[i] + more <= GREETING &&
                send(fds[i], kind->said + said[i], more, MSG_NOSIGNAL | MSG_DONTWAIT) == more)
                said[i] += more;
            if (fds[i] >= 0 && kind->half && said[i] == kind->first)
                shutdown(fds[i], SHUT_WR);
        }
        pause_ms(5);
    }
    for (int i = 0; i < kind->count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return NULL;
}

// A file about the thread that listens, opened; it can be read again when nothing can be opened.
static int about_thread(const char *what)
{
    char path[400], name[32];
    int found = -1;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; found < 0 && (entry = readdir(folder)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file != NULL && fgets(name, sizeof name, file) && !strcmp(name, "fompi-contact\n")) {
            snprintf(path, sizeof path, "/proc/self/task/%s/%s", entry->d_name, what);
            found = open(path, O_RDONLY | O_CLOEXEC);
        }
        if (file != NULL)
            fclose(file);
    }
    closedir(folder);
    CHECK(found >= 0);
    return found;
}

// Nanoseconds of a core that the thread has had.
static long own_time(int fd)
{
    char text[200];
    const ssize_t length = pread(fd, text, sizeof text - 1, 0);
    CHECK(length > 0);
    text[length] = 0;
    return atol(text);
}

// All ranks have to do with all others but the last, from which rank 0 and others stay away; or the
// first one with the last.
static void contact(MPI_Win win, int is_last)
{
    const long value = rank + 1;
    for (int target = is_last ? size - 1 : 0; target < (is_last ? size : size - 1); target++) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, MPI_MODE_NOCHECK, win));
        OK(MPI_Put(&value, 1, MPI_LONG, target, rank, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(target, win));
    }
}

// The ports that were opened between two checks, of all ranks.
static void share_ports(const int *before, int count_before, const int *now, int count_now)
{
    const char *interface = getenv("FOMPI_NET_INTERFACE");
    int mine = 0;
    for (int i = 0; i < count_now; i++) {
        int known = 0;
        for (int j = 0; j < count_before; j++)
            known |= before[j] == now[i];
        if (known)
            continue;
        mine = abs(now[i]);
        CHECK_EQ(now[i] < 0, interface != NULL && strcmp(interface, "lo") == 0);
    }
    CHECK(mine != 0);
    ports_count = size;
    OK(MPI_Allgather(&mine, 1, MPI_INT, ports, 1, MPI_INT, MPI_COMM_WORLD));
}

static void among_strangers(MPI_Win win)
{
    pthread_t threads[KINDS];
    const int thread = about_thread("schedstat"), sockets_before = sockets("");
    const long heap_before = (long)heap_bytes(), time_before = own_time(thread);
    fompi_verbs_counts counts, now;
    CHECK(get_counts(&counts));
    const double began = seconds();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; rank == 0 && i < KINDS; i++)
        CHECK(pthread_create(&threads[i], NULL, be_strange, (void *)&kinds[i]) == 0);
    while (rank == 0 && calls < NONSENSE) {
        check_here(__FILE__, __LINE__);
        pause_ms(1);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    contact(win, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    is_over = 1;
    for (int i = 0; rank == 0 && i < KINDS; i++)
        pthread_join(threads[i], NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(answers, 0);
    const double had = (own_time(thread) - time_before) * 1e-9, all = seconds() - began;
    if (getenv("CHECK_SHOW") != NULL)
        printf("rank %d: %.3f s of a core in %.3f s, %ld calls\n", rank, had, all, calls);
    if (had > 0.1 + 0.5 * all)
        check_failed(__FILE__, __LINE__, "the thread had %.3f s of a core in %.3f s", had, all);
    CHECK(get_counts(&now));
    const long contacts = (long)(now.contacted + now.accepted - counts.contacted - counts.accepted);
    // Over TCP the stream of a contact stays; its origin has two descriptors of it.
    const char *net = getenv("FOMPI_NET");
    const long streams = net != NULL && strcmp(net, "tcp") == 0 ? 2 * contacts : 0;
    // A call has five seconds; the watchdog is more patient.
    while (sockets("") > sockets_before + streams) {
        check_here(__FILE__, __LINE__);
        pause_ms(5);
    }
    CHECK((long)heap_bytes() - heap_before <= HEAP_MORE + contacts * HEAP_CONTACT);
    close(thread);
}

// The last rank has no descriptor left when it is called.
static void without_descriptors(MPI_Win win)
{
    struct rlimit limit, none;
    MPI_Request ready;
    const int is_last = rank == size - 1;
    const int thread = about_thread("schedstat");
    int fds[8], taken[NUMBERS], taken_count = 0;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    none = limit;
    if (is_last) {
        none.rlim_cur = NUMBERS;
        CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
        while (taken_count < NUMBERS && (taken[taken_count] = dup(thread)) >= 0)
            taken_count++;
        CHECK(errno == EMFILE);
    }
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &ready));
    OK(MPI_Wait(&ready, MPI_STATUS_IGNORE));
    if (rank == 0) {
        for (int i = 0; i < 8; i++) {
            fds[i] = call_at(size - 1);
            CHECK(fds[i] >= 0 && send(fds[i], "x", 1, MSG_NOSIGNAL) == 1);
        }
        contact(win, 1);
        for (int i = 0; i < 8; i++)
            close(fds[i]);
    }
    if (is_last) {
        const long before = own_time(thread);
        pause_ms(500);
        const long spent = own_time(thread) - before;
        while (taken_count > 0)
            close(taken[--taken_count]);
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        CHECK(spent <= SPENT_MAX);
    }
    close(thread);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    *(void **)&get_counts = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts");
    int before[64], now[64], everyone[1024] = {0};
    long *base = calloc(size, sizeof *base);
    MPI_Win first, win;
    fompi_verbs_counts counts;
    // What the host MPI listens at, it does from here on.
    OK(MPI_Allgather(&rank, 1, MPI_INT, everyone, 1, MPI_INT, MPI_COMM_WORLD));
    const int count_before = listening(before);
    OK(MPI_Win_create(base, size * sizeof *base, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &first));
    if (get_counts != NULL && get_counts(&counts)) {
        const int count_now = listening(now);
        share_ports(before, count_before, now, count_now);
        heap_watch(*(void **)&get_counts);
        OK(MPI_Win_create(base, size * sizeof *base, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        among_strangers(win);
        without_descriptors(win);
        for (int i = 0; i < size && rank < size - 1; i++)
            CHECK_EQ(base[i], i + 1);
        if (rank == size - 1)
            CHECK_EQ(base[0], 1);
        OK(MPI_Win_free(&win));
    }
    OK(MPI_Win_free(&first));
    free(base);
    return check_end();
}
