// Chaos for memory: what a program may do to the pages of its window beside the window's life.
//
// A round makes a window over memory of some kind. The memory is cut into zones. One zone is
// accessed by other ranks (use.c), one by stores of its owner, and each other zone belongs to an
// act: an actor (actors_*.c) that works on the zone between two points of the window's life.
// Nothing else changes a zone, so a model (model.c) knows each byte at each point. All ranks draw
// the plan of all ranks from the seed (plan.c).
#ifndef CHAOS_H
#define CHAOS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mpi.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum { RANKS_MAX = 16, ACTS_MAX = 6, PAGE = 4096, NAME_BYTES = 2048 };

// --- numbers by chance, from a seed -------------------------------------------------------------

struct chance {
    uint64_t state;
};

uint64_t mixed(uint64_t value);
uint64_t draw(struct chance *chance);
uint64_t below(struct chance *chance, uint64_t end);
bool percent(struct chance *chance, unsigned share);

// --- plans --------------------------------------------------------------------------------------

// The points of a window's life at which acts begin and end: before MPI_Win_create, between it and
// MPI_Win_free, and after MPI_Win_free. An act that begins at one point and ends at a later one is
// pending over, or runs during, the call between them.
enum point { BEFORE, ALIVE, AFTER };

// What the kernel does to the pages.
enum group {
    READS = 1 << 0,    // reads them
    WRITES = 1 << 1,   // writes them
    HOLDS = 1 << 2,    // holds a reference to them
    PINS = 1 << 3,     // pins them for a device or ring
    MAPS = 1 << 4,     // maps or unmaps them
    RIGHTS = 1 << 5,   // changes rights, flags, names or watchers
    FORKS = 1 << 6,    // copies the address space, or shares it
    SIGNALS = 1 << 7,  // runs a handler on them
    THREADS = 1 << 8,  // runs another thread, or another stack
    MESSAGES = 1 << 9, // the MPI reads or writes them
};

// What an actor needs or does.
enum need {
    PAGES = 1 << 0,     // the zone is whole pages
    ANONYMOUS = 1 << 1, // private anonymous memory
    TOUCHED = 1 << 2,   // each page is stored to first
    UNTOUCHED = 1 << 3, // no page is, if the memory is new
    NO_FORK = 1 << 4,   // not in a round with forks
    DOES_FORK = 1 << 5,
    ON_MAIN = 1 << 6,   // `once` runs on the thread of the round only
    JOINT = 1 << 7,     // all ranks take part
    MULTIPLE = 1 << 8,  // MPI_THREAD_MULTIPLE
    WHOLE = 1 << 9,     // the zone is all memory, which is malloc's; acts when all use is over
    SINGLE = 1 << 10,   // once per rank and round
    PRIVATE = 1 << 12,  // memory that a child does not share
    AT_END = 1 << 13,   // after MPI_Win_free only
    NOT_ALIVE = 1 << 14, // changes nothing while a window is over it: a program can notice that (README)
    STATE_ENDS = 1 << 11, // makes sense only where it ends later than it begins
};

struct act;

struct actor {
    const char *name;
    unsigned groups, needs;
    size_t bytes_min;
    bool (*works)(void);          // whether this system lets it; NULL: always
    void (*begin)(struct act *);  // each may be NULL
    void (*once)(struct act *);   // at each point between, on the main thread or on another one
    void (*end)(struct act *);
};

struct act {
    const struct actor *actor;
    int rank, index;
    enum point first, last;
    bool on_thread;        // `once` runs in a loop on another thread from `first` to `last`
    bool is_touched;
    size_t offset, bytes;  // of the zone in the memory of the rank
    size_t bytes_all_ranks; // JOINT: the smallest zone
    uint64_t seed, seed_all_ranks;
    // From here on of the rank itself, while the round runs.
    unsigned char *zone, *want;
    atomic_bool is_quiet;  // the zone may be read, and holds `want`
    bool is_begun, is_inert;
    struct chance chance;
    struct round *round;
    void *state;
    pthread_t thread;
    atomic_bool is_stopped;
    uint64_t version;
};

enum synchronisation { FENCE, LOCK_ALL, LOCK, POST_START, SYNCHRONISATIONS };

struct part { // of a rank
    int kind;                     // of memory
    size_t bytes;                 // of memory
    size_t win_offset, win_bytes; // of the window in it
    size_t used, used_bytes;      // the zone that other ranks access, a multiple of 64
    size_t own, own_bytes;        // the zone of the owner's stores
    bool is_used_touched, is_own_touched;
    unsigned delay_us[2];         // before MPI_Win_create and MPI_Win_free
    int acts, joint; // of the acts, those of all ranks, which come first
    struct act act[ACTS_MAX];
};

struct round {
    uint64_t seed, number;
    int ranks, rank;
    bool waits[2];       // a barrier before MPI_Win_create and MPI_Win_free
    int uses;            // how often the window is used
    enum synchronisation how[3];
    int puts;            // small puts of each use
    bool reads_early;    // the model is compared before MPI_Win_create, which reads all pages
    bool is_clear;       // no act is pending over MPI_Win_create, and all memory may move
    bool compares;       // other ranks get the whole window and compare it with the model
    struct part part[RANKS_MAX];
    // Of the rank itself, while the round runs.
    struct part *my;
    unsigned char *base, *want;
    MPI_Win win;
    int used_times;
    uint64_t own_version;
};

// What the command line says.
struct settings {
    uint64_t seed, first, rounds, times;
    double seconds;
    unsigned groups;
    const char *actor, *memory, *state, *folder;
    int act;             // only the act of this index, or -1
    bool is_verbose;
    int thread_level;
};
extern struct settings settings;
extern int my_rank, all_ranks;

void plan_round(struct round *round, uint64_t seed, uint64_t number);
void describe(const struct round *round, char *text, size_t bytes);

// --- actors -------------------------------------------------------------------------------------

extern const struct actor actors_bytes[], actors_direct[], actors_rings[], actors_holds[],
    actors_rights[], actors_watchers[], actors_maps[], actors_forks[], actors_signals[],
    actors_threads[], actors_messages[], actors_processes[];

int actor_count(void);
const struct actor *actor_at(int number);
bool is_available(int number); // on all ranks
void find_available(void);
int groups_of(const char *name); // 0: there is none
const char *group_names(unsigned groups);

// --- memory -------------------------------------------------------------------------------------

enum memory_trait {
    IS_ANONYMOUS = 1 << 0, // private and anonymous
    IS_NEW = 1 << 1,       // reads as zero until it is stored to
    IS_MALLOC = 1 << 2,
    IS_STACK = 1 << 3,     // the round runs on it
    IS_SHARED = 1 << 4,
    ON_THREAD = 1 << 5,    // the round runs on another thread than MPI_Init
    IS_REUSED = 1 << 6,    // a stack in memory that may have been a window's: no fork on it
};

struct memory {
    const char *name;
    unsigned traits;
    size_t bytes_max;
};
extern const struct memory memories[];
int memory_count(void);
// Runs `life` on memory of the part's kind.
void with_memory(struct round *round, void (*life)(struct round *));
void check_fd_of_memory(struct round *round);

// --- model --------------------------------------------------------------------------------------

// The bytes of one version of a zone.
void pattern(unsigned char *to, size_t bytes, uint64_t seed);
// Stores the next version into the zone and the model.
void refill(struct act *act);
// The next version, in the model only.
void want_next(struct act *act);
// Fails unless the zone is what the model says. `what` is what has been done.
void expect(struct act *act, const char *what);
void expect_bytes(struct act *act, const unsigned char *have, const unsigned char *want,
                  size_t bytes, const char *what);
// A failed system call or check ends the job with a line that describes the round.
#define fail(act, ...) fail_at(act, __FILE__, __LINE__, __VA_ARGS__)
void fail_at(const struct act *act, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));
// Not possible here (a limit, no rights): the act does nothing from here on.
void give_up(struct act *act);
void check_all(struct round *round, const char *when);
void say_state(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern char round_text[NAME_BYTES];
extern _Atomic(const char *) phase_text;

// --- life and use -------------------------------------------------------------------------------

void live(struct round *round);
void use_window(struct round *round);
void compare_windows(struct round *round);
void store_own(struct round *round);
void check_kept(void); // blocks that were kept from earlier rounds

// --- tools of actors ----------------------------------------------------------------------------

void spin_us(unsigned us);
void *state_of(struct act *act, size_t bytes); // zeroed; freed after `end`
void start_thread(struct act *act, void *(*work)(void *));
void join_thread(struct act *act);
bool read_all(int fd, void *to, size_t bytes);
bool write_all(int fd, const void *from, size_t bytes);
void open_pipe(struct act *act, int pipe_of[2]);
void open_pair(struct act *act, int pair_of[2]);
// The folder for files of this process, which is removed at the end.
const char *work_folder(void);
void remove_work_folder(void);
// Whether all mappings of the range have the flag (two letters) in /proc/self/smaps; -1: no file.
int has_flag(const void *at, size_t bytes, const char *flag);
int has_name(const void *at, size_t bytes, const char *name);
int mappings(void);

#endif
