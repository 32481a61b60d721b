// The call that is being made: its number, its text, which answers are right. Whatever goes wrong
// in it, a crash and a rank that hangs too, ends the job with all of that, and with the seed.

#ifndef WRONG_CALLS_CALL_H
#define WRONG_CALLS_CALL_H

#include "../robust.h"

#include "../../notified_weak.h"

#include <signal.h>

// A source of numbers: `all` gives the same to all ranks, `own` to each rank its own.
struct source { uint64_t state; };
static struct source all, own;

static uint64_t draw_word(struct source *from)
{
    from->state ^= from->state << 13;
    from->state ^= from->state >> 7;
    from->state ^= from->state << 17;
    return from->state * 0x2545f4914f6cdd1dULL;
}

static unsigned draw(struct source *from, unsigned below)
{
    return (unsigned)(draw_word(from) >> 33) % below;
}

static void seed_sources(uint64_t seed)
{
    all.state = 0x9e3779b97f4a7c15ULL * (seed + 1);
    own.state = all.state ^ (0xd1b54a32d192ed03ULL * (uint64_t)(rank + 1));
    for (int i = 0; i < 20; i++)
        draw_word(&all), draw_word(&own);
}

// Sets of error classes, a bit each. NO_ERROR is MPI_SUCCESS.
#define CLASSES(X) X(ERR_BUFFER) X(ERR_COUNT) X(ERR_TYPE) X(ERR_COMM) X(ERR_RANK) X(ERR_REQUEST) \
    X(ERR_GROUP) X(ERR_OP) X(ERR_ARG) X(ERR_TRUNCATE) X(ERR_KEYVAL) X(ERR_NO_MEM) X(ERR_SIZE) \
    X(ERR_DISP) X(ERR_LOCKTYPE) X(ERR_ASSERT) X(ERR_WIN) X(ERR_BASE) X(ERR_RMA_SYNC) \
    X(ERR_RMA_RANGE) X(ERR_RMA_ATTACH) X(ERR_RMA_FLAVOR) X(ERR_OTHER) X(ERR_UNSUPPORTED_OPERATION) \
    X(ERR_NOTIFICATION)
// A class that is known at run time: `know_classes`.
enum { MPI_ERR_NOTIFICATION = -1 };
#define NUMBER(name) , NUMBER_##name
#define BIT(name) , name = 1 << NUMBER_##name
#define ROW(name) , {"MPI_" #name, MPI_##name}
enum { NUMBER_NO_ERROR CLASSES(NUMBER), CLASS_COUNT };
enum { NO_ERROR = 1 CLASSES(BIT), ANY_ERROR = (1 << CLASS_COUNT) - 2 };
static struct { const char *name; int class; } class_table[] = {
    {"MPI_SUCCESS", MPI_SUCCESS} CLASSES(ROW)
};
#undef NUMBER
#undef BIT
#undef ROW

static void know_classes(void)
{
    class_table[NUMBER_ERR_NOTIFICATION].class = FOMPI_ERR_RMA_NOTIFICATION;
}

static struct {
    uint64_t seed;
    // calls are printed from this one on; none if it is 0
    long trace;
    long number;
    char text[1200];
    size_t length;
    // one of these classes if any; NO_ERROR or `maybe` otherwise
    unsigned wrong, maybe;
    // how many were right and succeeded, how many were wrong and refused
    long done, refused;
} call = {.text = "before the first call"};

// Appends to the text of the call.
__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    va_list arguments;
    const size_t room = sizeof call.text - call.length;
    va_start(arguments, format);
    const int added = vsnprintf(call.text + call.length, room, format, arguments);
    va_end(arguments);
    if (added > 0)
        call.length += (size_t)added < room ? (size_t)added : room - 1;
}

// A new call, which is right as long as nothing is said against it.
static void begin(const char *name)
{
    call.number++;
    call.length = 0;
    call.wrong = call.maybe = 0;
    tell("%s(", name);
}

// The call is wrong, and answers one of these classes.
static void fault(unsigned classes)
{
    call.wrong |= classes;
}

// Where the standard leaves it open, these classes are right as well as what is right otherwise.
static void doubt(unsigned classes)
{
    call.maybe |= classes;
}

static void tell_classes(char *text, size_t room, unsigned classes)
{
    text[0] = '\0';
    for (int i = 0; i < CLASS_COUNT; i++)
        if (classes >> i & 1) {
            const size_t length = strlen(text);
            snprintf(text + length, room - length, "%s%s", length ? " " : "", class_table[i].name);
        }
}

// Ends the job: what has happened, in which call, and how to see it again.
__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
    char what[1500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fprintf(stderr, "wrong_calls: seed %llu, rank %d of %d, call %ld: %s: %s\n",
            (unsigned long long)call.seed, rank, size, call.number, call.text, what);
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

// All arguments are known: from here on the call is under way.
static void go(void)
{
    tell(")");
}

// Holds an answer against the right ones. Whether it was success.
static int judge(int code)
{
    char right[700], got[100];
    const unsigned expected = call.wrong ? call.wrong | (call.maybe & ANY_ERROR)
                                         : NO_ERROR | call.maybe;
    const int class = class_of(code);
    unsigned answer = 0;
    for (int i = 0; i < CLASS_COUNT; i++)
        if (class_table[i].class == class)
            answer = 1u << i;
    tell_classes(got, sizeof got, answer);
    if (call.trace > 0 && call.number >= call.trace)
        fprintf(stderr, "%d: %ld: %s: %s\n", rank, call.number, call.text, got);
    if ((answer & expected) == 0) {
        tell_classes(right, sizeof right, expected);
        fail("answers %s (class %d), expected %s", got, class, right);
    }
    if (class == MPI_SUCCESS)
        call.done++;
    else
        call.refused++;
    return class == MPI_SUCCESS;
}

// What a call has stored must be what is right.
#define CHECK_ANSWER(condition) \
    do { if (!(condition)) fail("succeeds, but not: %s", #condition); } while (0)

// Only what is safe in a signal handler.
static void on_signal(int number)
{
    static char line[sizeof call.text + 200];
    const int length = snprintf(line, sizeof line,
                                "wrong_calls: seed %llu, rank %d of %d, call %ld: %s: %s\n",
                                (unsigned long long)call.seed, rank, size, call.number, call.text,
                                number == SIGALRM ? "still there when time was up" : "crashed");
    if (write(2, line, (size_t)length) < 0)
        _exit(2);
    _exit(1);
}

static void watch_signals(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], on_signal);
}

// How often arguments are wrong in this call, in sixteenths: never, now and then, often.
static unsigned oddness;

static void draw_oddness(void)
{
    const unsigned mood = draw(&own, 20);
    oddness = mood < 9 ? 0 : mood < 17 ? 2 : 7;
}

static int odd(void)
{
    return draw(&own, 16) < oddness;
}

#endif
