// Transfers of a device from and to the zone: O_DIRECT, alone and by Linux AIO.
#include "chaos.h"
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILE_BYTES = 4 << 20 };
static int source = -1, scratch = -1;
static unsigned char *source_bytes;

// The file to read from and one to write to, if the system has such access here.
static bool open_files(void)
{
    if (source >= 0)
        return true;
    char path[800];
    snprintf(path, sizeof path, "%s/source", work_folder());
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    source_bytes = malloc(FILE_BYTES);
    pattern(source_bytes, FILE_BYTES, 4711);
    if (fd < 0 || !write_all(fd, source_bytes, FILE_BYTES) || fsync(fd) != 0)
        return false;
    close(fd);
    source = open(path, O_RDONLY | O_DIRECT);
    snprintf(path, sizeof path, "%s/scratch", work_folder());
    scratch = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
    return source >= 0 && scratch >= 0;
}

static size_t length_of(const struct act *act)
{
    return act->bytes < FILE_BYTES ? act->bytes : FILE_BYTES;
}

// Reads directly over bytes that are others.
static void read_once(struct act *act)
{
    const size_t bytes = length_of(act);
    memset(act->zone, 0, bytes);
    ssize_t got = pread(source, act->zone, bytes, 0);
    if (got != (ssize_t)bytes)
        fail(act, "pread (O_DIRECT) returned %zd of %zu", got, bytes);
    memcpy(act->want, source_bytes, bytes);
    expect_bytes(act, act->zone, act->want, bytes, "pread (O_DIRECT)");
}

static void write_once(struct act *act)
{
    const size_t bytes = length_of(act);
    const off_t place = (off_t)act->index * FILE_BYTES;
    refill(act);
    ssize_t put = pwrite(scratch, act->zone, bytes, place);
    if (put != (ssize_t)bytes)
        fail(act, "pwrite (O_DIRECT) wrote %zd of %zu", put, bytes);
    unsigned char *have = aligned_alloc(PAGE, bytes);
    if (pread(scratch, have, bytes, place) != (ssize_t)bytes)
        fail(act, "pread");
    expect_bytes(act, have, act->want, bytes, "pwrite (O_DIRECT)");
    free(have);
}

// --- AIO ----------------------------------------------------------------------------------------

struct aio {
    aio_context_t context;
    struct iocb block;
};

static void submit(struct act *act, int command)
{
    struct aio *aio = state_of(act, sizeof *aio);
    struct iocb *list = &aio->block;
    const bool reads = command == IOCB_CMD_PREAD;
    if (syscall(SYS_io_setup, 4, &aio->context) != 0)
        fail(act, "io_setup");
    aio->block = (struct iocb){.aio_lio_opcode = (uint16_t)command,
                               .aio_fildes = (uint32_t)(reads ? source : scratch),
                               .aio_buf = (uintptr_t)act->zone,
                               .aio_nbytes = length_of(act),
                               .aio_offset = reads ? 0 : (int64_t)act->index * FILE_BYTES};
    if (syscall(SYS_io_submit, aio->context, 1L, &list) != 1)
        fail(act, "io_submit");
}

static void complete(struct act *act)
{
    struct aio *aio = act->state;
    struct io_event event;
    long got;
    do
        got = syscall(SYS_io_getevents, aio->context, 1L, 1L, &event, NULL);
    while (got < 0 && errno == EINTR);
    if (got != 1 || event.res != (int64_t)length_of(act))
        fail(act, "io_getevents: %lld of %zu bytes", (long long)event.res, length_of(act));
    syscall(SYS_io_destroy, aio->context);
}

static void begin_aio_read(struct act *act)
{
    atomic_store(&act->is_quiet, false);
    memset(act->zone, 0, act->bytes);
    submit(act, IOCB_CMD_PREAD);
}

static void end_aio_read(struct act *act)
{
    complete(act);
    memset(act->want, 0, act->bytes);
    memcpy(act->want, source_bytes, length_of(act));
    expect(act, "what AIO has read");
    atomic_store(&act->is_quiet, true);
}

static void begin_aio_write(struct act *act)
{
    refill(act);
    submit(act, IOCB_CMD_PWRITE);
}

static void end_aio_write(struct act *act)
{
    const size_t bytes = length_of(act);
    complete(act);
    unsigned char *have = aligned_alloc(PAGE, bytes);
    if (pread(scratch, have, bytes, (off_t)act->index * FILE_BYTES) != (ssize_t)bytes)
        fail(act, "pread");
    expect_bytes(act, have, act->want, bytes, "what AIO has written");
    free(have);
}

enum { DIRECT = PAGES | NO_FORK };

const struct actor actors_direct[] = {
    {"pread-direct", WRITES | PINS, DIRECT, 4 * PAGE, open_files, NULL, read_once, NULL},
    {"pwrite-direct", READS | PINS, DIRECT, 4 * PAGE, open_files, NULL, write_once, NULL},
    {"aio-read", WRITES | PINS, DIRECT | STATE_ENDS, 4 * PAGE, open_files, begin_aio_read, NULL,
     end_aio_read},
    {"aio-write", READS | PINS, DIRECT | STATE_ENDS, 4 * PAGE, open_files, begin_aio_write, NULL,
     end_aio_write},
    {NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
};
