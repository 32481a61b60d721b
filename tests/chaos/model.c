// What each byte must be, and how a failure is told.
#include "chaos.h"
#include <stdarg.h>
#include <unistd.h>

char round_text[NAME_BYTES];
_Atomic(const char *) phase_text = "";

uint64_t mixed(uint64_t value)
{
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

uint64_t draw(struct chance *chance)
{
    chance->state += 0x9e3779b97f4a7c15u;
    return mixed(chance->state);
}

uint64_t below(struct chance *chance, uint64_t end)
{
    return end ? draw(chance) % end : 0;
}

bool percent(struct chance *chance, unsigned share)
{
    return below(chance, 100) < share;
}

void pattern(unsigned char *to, size_t bytes, uint64_t seed)
{
    uint64_t word = mixed(seed) | 0x0101010101010101u; // no byte of it is zero
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t here = word + ((i / 8) * 0x0202020202020202u & 0x7e7e7e7e7e7e7e7eu);
        here |= 0x0101010101010101u;
        memcpy(to + i, &here, bytes - i < 8 ? bytes - i : 8);
    }
}

void want_next(struct act *act)
{
    act->version++;
    pattern(act->want, act->bytes, act->seed + act->version * 1000003);
}

void refill(struct act *act)
{
    want_next(act);
    memcpy(act->zone, act->want, act->bytes);
}

void fail_at(const struct act *act, const char *file, int line, const char *format, ...)
{
    int code = errno;
    char text[4096], what[512];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    const char *name = strrchr(file, '/');
    int length = snprintf(text, sizeof text,
                          "chaos: FOUND rank %d, %s, %s: %s (errno %d; %s:%d)\n  %s\n", my_rank,
                          act ? act->actor->name : "no actor", atomic_load(&phase_text), what,
                          code, name ? name + 1 : file, line, round_text);
    if (write(STDOUT_FILENO, text, (size_t)length) != length)
        _exit(4);
    _exit(3);
}

void give_up(struct act *act)
{
    act->is_inert = true;
}

void expect_bytes(struct act *act, const unsigned char *have, const unsigned char *want,
                  size_t bytes, const char *what)
{
    if (memcmp(have, want, bytes) == 0)
        return;
    size_t wrong = 0, first = bytes, last = 0, zeros = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (have[i] == want[i])
            continue;
        wrong++;
        zeros += have[i] == 0;
        first = i < first ? i : first;
        last = i;
    }
    errno = 0;
    if (wrong == 0)
        fail(act, "%s: the bytes differed, and no longer do", what);
    fail(act, "%s: %zu of %zu bytes are wrong (%zu of them zero), from %zu to %zu: %02x for %02x",
         what, wrong, bytes, zeros, first, last, have[first], want[first]);
}

void expect(struct act *act, const char *what)
{
    expect_bytes(act, act->zone, act->want, act->bytes, what);
}

// Checks what no act changes: quiet zones, the owner's, and all bytes between.
void check_all(struct round *round, const char *when)
{
    const struct part *my = round->my;
    struct act shown = {.actor = &(struct actor){.name = "memory"}, .round = round};
    size_t at = 0;
    while (at < my->bytes) {
        size_t next = my->bytes;
        const struct act *inside = NULL;
        for (int i = 0; i < my->acts; i++) {
            const struct act *act = &my->act[i];
            if (atomic_load(&act->is_quiet) || act->is_inert)
                continue;
            if (act->offset <= at && at < act->offset + act->bytes)
                inside = act;
            else if (act->offset > at && act->offset < next)
                next = act->offset;
        }
        if (inside) {
            at = inside->offset + inside->bytes;
            continue;
        }
        expect_bytes(&shown, round->base + at, round->want + at, next - at, when);
        at = next;
    }
}
