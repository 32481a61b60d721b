/* Calls everything that libfompi exports, with libfompi in front of the MPI of mpi.c. Each argument
 * must arrive as it was given, whole words with all bits, and the answer must come back.
 *
 *     calls all       each function in turn
 *     calls refused   FOMPI_FALLBACK=error: creating a window fails, through the communicator's
 *                     error handler, with a class of its own
 *     calls own       functions that are libfompi's own: each raises an error on its window, of a
 *                     class of its own; prints their names
 *     calls one       MPI_Put, which this MPI does not have
 *     calls names     prints the names
 */
#define _GNU_SOURCE
#include "signatures.h"
#include <ctype.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define WORDS 16
typedef unsigned long word;
typedef word function(word, word, word, word, word, word, word, word, word, word, word, word, word,
                      word, word, word);

#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
#define X(name, arguments) extern function name;
EACH(X)
#undef X

static const struct {
    const char *name, *arguments;
    function *call;
} functions[] = {
#define X(name, arguments) {#name, arguments, name},
    EACH(X)
#undef X
};
#define FUNCTIONS (sizeof functions / sizeof *functions)

extern word seen[WORDS];
extern const char *called, *text_of_class;
extern int raised, classes;
extern void *communicator;

/* Wide, odd or not, different in both halves, and different for each place and function. */
static word given(unsigned which, unsigned place) {
    return 0x9e3779b97f4a7c15UL * (which * WORDS + place + 1);
}

static word call(unsigned which) {
    word a[WORDS];
    for (unsigned i = 0; i < WORDS; i++) a[i] = given(which, i);
    return functions[which].call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                                 a[11], a[12], a[13], a[14], a[15]);
}

static int wrong;

static void all(void) {
    for (int turn = 0; turn < 2; turn++)
        for (unsigned which = 0; which < FUNCTIONS; which++) {
            const char *name = functions[which].name, *arguments = functions[which].arguments;
            called = "nothing";
            memset(seen, 0, sizeof seen);
            word answer = call(which);
            if (strcmp(called, name)) {
                printf("%s: arrived at %s\n", name, called);
                wrong = 1;
                continue;
            }
            if ((uint32_t)answer != which + 1) {
                printf("%s: answered %#lx\n", name, answer);
                wrong = 1;
            }
            unsigned count = *arguments == 'n' ? WORDS : (unsigned)strlen(arguments);
            for (unsigned i = 0; i < count; i++) {
                word mask = arguments[0] != 'n' && arguments[i] == 'i' ? UINT32_MAX : ~0UL;
                if ((seen[i] & mask) == (given(which, i) & mask)) continue;
                printf("%s: word %u is %#lx\n", name, i, seen[i]);
                wrong = 1;
            }
        }
}

static void refused(void) {
    static const struct {
        const char *name;
        unsigned communicator;
    } creations[] = {
        {"MPI_Win_create", 4},          {"PMPI_Win_create_c", 4},
        {"MPI_Win_allocate", 3},        {"PMPI_Win_allocate", 3},
        {"MPI_Win_allocate_c", 3},      {"MPI_Win_allocate_shared", 3},
        {"MPI_Win_allocate_shared_c", 3}, {"MPI_Win_create_dynamic", 1},
    };
    for (unsigned i = 0; i < sizeof creations / sizeof *creations; i++)
        for (unsigned which = 0; which < FUNCTIONS; which++) {
            if (strcmp(functions[which].name, creations[i].name)) continue;
            called = "nothing", raised = 0, communicator = 0;
            word answer = call(which);
            if ((uint32_t)answer == 777 && raised == 777 && !strcmp(called, "nothing") &&
                (word)communicator == given(which, creations[i].communicator))
                continue;
            printf("%s: %#lx, raised %d, called %s\n", creations[i].name, answer, raised, called);
            wrong = 1;
        }
    if (classes != 1 || !text_of_class || !strstr(text_of_class, "FOMPI_FALLBACK=error")) {
        printf("%d classes, %s\n", classes, text_of_class ? text_of_class : "no text");
        wrong = 1;
    }
}

/* The functions that are libfompi's own, in C and in Fortran, with the number of their arguments in Fortran
 * ahead of the error code and which one is the window. */
enum { NO_WINDOW = WORDS - 1 }; /* the last argument of none, which is 0 */
static const struct {
    const char *name;
    unsigned count, window;
} own_functions[] = {
    {"FOMPI_Put_notify", 9, 8},
    {"FOMPI_Put_notify_c", 9, 8},
    {"FOMPI_Rput_notify", 10, 8},
    {"FOMPI_Rput_notify_c", 10, 8},
    {"FOMPI_Get_notify", 9, 8},
    {"FOMPI_Get_notify_c", 9, 8},
    {"FOMPI_Rget_notify", 10, 8},
    {"FOMPI_Rget_notify_c", 10, 8},
    {"FOMPI_Accumulate_notify", 10, 9},
    {"FOMPI_Accumulate_notify_c", 10, 9},
    {"FOMPI_Raccumulate_notify", 11, 9},
    {"FOMPI_Raccumulate_notify_c", 11, 9},
    {"FOMPI_Get_accumulate_notify", 13, 12},
    {"FOMPI_Get_accumulate_notify_c", 13, 12},
    {"FOMPI_Rget_accumulate_notify", 14, 12},
    {"FOMPI_Rget_accumulate_notify_c", 14, 12},
    {"FOMPI_Rfetch_and_op", 8, 6},
    {"FOMPI_Rcompare_and_swap", 8, 6},
    {"FOMPI_Win_set_num_notify", 3, 0},
    {"FOMPI_Win_get_num_notify", 3, 0},
    {"FOMPI_Win_get_notify_value", 3, 0},
    {"FOMPI_Win_reset_notify_value", 3, 0},
    {"FOMPI_Win_wait_notify", 3, 0},
    {"FOMPI_Win_wait_any_notify", 5, 0},
    {"FOMPI_Win_notify_request", 4, 0},
    {"FOMPI_Mem_expose", 5, 3},
    {"FOMPI_Mem_allocate", 5, 2},
    {"FOMPI_Mem_pack", 2, NO_WINDOW},
    {"FOMPI_Mem_unpack", 3, 1},
    {"FOMPI_Mem_query", 4, NO_WINDOW},
    {"FOMPI_Mem_withdraw", 1, NO_WINDOW},
    {"FOMPI_Mem_release", 1, NO_WINDOW},
    {"FOMPI_Complete", 2, 1},
    {"FOMPI_Mem_put", 6, NO_WINDOW},
    {"FOMPI_Mem_get", 6, NO_WINDOW},
    {"FOMPI_Mem_accumulate", 7, NO_WINDOW},
    {"FOMPI_Mem_accumulate_scaled", 7, NO_WINDOW},
    {"FOMPI_Mem_fetch_and_op", 7, NO_WINDOW},
    {"FOMPI_Mem_compare_and_swap", 7, NO_WINDOW},
    {"FOMPI_Xfer", 15, NO_WINDOW},
    {"FOMPI_Win_order", 2, 1},
    {"FOMPI_Win_nflush", 3, NO_WINDOW},
    {"FOMPI_Complete_collective", 1, 0},
    {"FOMPI_Win_dup", 3, 0},
    {"FOMPI_Win_from_mem", 4, NO_WINDOW},
};

/* Calls a function, and says whether it has raised the class 777 on this window, and nothing else. */
static word raises(const char *name, const word *a, word window) {
    function *found = (function *)dlsym(RTLD_DEFAULT, name);
    called = "nothing";
    memset(seen, 0, sizeof seen);
    word answer = !found ? 0 : found(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
                                     a[10], a[11], a[12], a[13], a[14], a[15]);
    if (found && !strcmp(called, "PMPI_Win_call_errhandler") && seen[0] == window &&
        (uint32_t)seen[1] == 777) {
        puts(name);
        return answer;
    }
    printf("%s: called %s, %#lx, %#lx\n", name, found ? called : "nowhere", seen[0], seen[1]);
    wrong = 1;
    return answer;
}

/* The window that the MPI converts an integer of Fortran to. */
static word converted(void) {
    unsigned which = 0;
    while (strcmp(functions[which].name, "PMPI_Win_f2c")) which++;
    return which + 1;
}

static void own(void) {
    for (unsigned which = 0; which < sizeof own_functions / sizeof *own_functions; which++) {
        const unsigned count = own_functions[which].count, window = own_functions[which].window;
        char name[64] = "";
        word a[WORDS];
        int integers[WORDS];
        for (unsigned i = 0; i < WORDS; i++) a[i] = given(which, i);
        if (window == NO_WINDOW) {
            a[NO_WINDOW] = 0;
            a[3] = 0; /* no memory handle is a word of any value */
        }
        if ((uint32_t)raises(own_functions[which].name, a, a[window]) != 777) wrong = 1;
        for (unsigned i = 0; own_functions[which].name[i]; i++)
            name[i] = (char)tolower(own_functions[which].name[i]), name[i + 1] = '_';
        for (unsigned i = 0; i < WORDS; i++) integers[i] = (int)i, a[i] = (word)&integers[i];
        raises(name, a, window == NO_WINDOW ? 0 : converted());
        for (unsigned i = 0; i < WORDS; i++)
            if (integers[i] != (i == count ? 777 : (int)i)) wrong = 1;
    }
    if (classes != 1 || !text_of_class || !strstr(text_of_class, "not supported")) {
        printf("%d classes, %s\n", classes, text_of_class ? text_of_class : "no text");
        wrong = 1;
    }
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    if (!strcmp(mode, "all")) all();
    if (!strcmp(mode, "refused")) refused();
    if (!strcmp(mode, "own")) own();
    if (!strcmp(mode, "one")) MPI_Put(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    if (!strcmp(mode, "names"))
        for (unsigned which = 0; which < FUNCTIONS; which++) puts(functions[which].name);
    return wrong;
}
