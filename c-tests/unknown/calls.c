/* Calls everything that libfompi exports, with libfompi in front of the MPI of mpi.c. Each argument
 * must arrive as it was given, whole words with all bits, and the answer must come back.
 *
 *     calls all       each function in turn
 *     calls refused   FOMPI_FALLBACK=error: creating a window fails, through the communicator's
 *                     error handler, with a class of its own
 *     calls one       MPI_Put, which this MPI does not have
 *     calls names     prints the names
 */
#include "signatures.h"
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

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    if (!strcmp(mode, "all")) all();
    if (!strcmp(mode, "refused")) refused();
    if (!strcmp(mode, "one")) MPI_Put(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    if (!strcmp(mode, "names"))
        for (unsigned which = 0; which < FUNCTIONS; which++) puts(functions[which].name);
    return wrong;
}
