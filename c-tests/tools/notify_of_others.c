// Notified access of an MPI whose functions have the names of Intel's and other arguments: each call
// reaches that MPI's own function with all of its arguments, the first time and later.
// ranks: 1
// linked: bull

#include "check.h"

#include <dlfcn.h>

// From profiler/bull.c, which is linked with this program and stands for that MPI.
extern const char *bull_called;
extern unsigned long bull_words[9];
extern double bull_numbers[8];

typedef unsigned long word;

// Intel's mpi.h declares these names with its own arguments.
static void *function(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) check_failed(__FILE__, __LINE__, "%s is not there", name);
    return found;
}

static void arrived(const char *name, int answer, int count, const word *words)
{
    if (strcmp(bull_called, name))
        check_failed(__FILE__, __LINE__, "%s: %s was called", name, bull_called);
    if (answer != 4711) check_failed(__FILE__, __LINE__, "%s: answered %d", name, answer);
    for (int i = 0; i < count; i++)
        if (bull_words[i] != words[i])
            check_failed(__FILE__, __LINE__, "%s: word %d is %#lx, not %#lx", name, i,
                         bull_words[i], words[i]);
    bull_called = "nothing";
}

#define WIDE(n) (0x8000000180000001UL + 0x0000001100000011UL * (n))

static void create(const char *name)
{
    int (*call)(word, word, int, word, word, word) = function(name);
    word words[] = {WIDE(1), WIDE(2), 8, WIDE(3), WIDE(4), WIDE(5)};
    arrived(name, call(words[0], words[1], 8, words[3], words[4], words[5]), 6, words);
}

static void transfer(const char *name)
{
    int (*call)(word, int, word, int, word, int, word, word, int) = function(name);
    word words[] = {WIDE(1), 3, WIDE(2), 0, WIDE(3), 5, WIDE(4), WIDE(5), 7};
    int answer = call(words[0], 3, words[2], 0, words[4], 5, words[6], words[7], 7);
    arrived(name, answer, 9, words);
}

static void window(const char *name, int count)
{
    int (*call)(word, int, word) = function(name);
    word words[] = {WIDE(6), 3, WIDE(7)};
    arrived(name, call(words[0], 3, words[2]), count, words);
}

static void numbers(const char *name)
{
    double (*call)(double, double, double, double, double, double, double, double, word, word, word,
                   word, word, word, word, word, word) = function(name);
    word words[9];
    for (int i = 0; i < 9; i++) words[i] = WIDE(i);
    double answer = call(1, 2, 3, 4, 5, 6, 7, 8, words[0], words[1], words[2], words[3], words[4],
                         words[5], words[6], words[7], words[8]);
    CHECK(answer == 9);
    arrived(name, 4711, 9, words);
    for (int i = 0; i < 8; i++) CHECK(bull_numbers[i] == i + 1);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (int turn = 0; turn < 2; turn++) {
        create("MPIX_Win_create_notify");
        create("PMPIX_Win_create_notify");
        window("MPIX_Win_free_notify", 1);
        window("PMPIX_Win_free_notify", 1);
        window("MPIX_Win_get_notify", 3);
        window("PMPIX_Win_get_notify", 3);
        window("MPIX_Win_set_notify", 2);
        window("PMPIX_Win_set_notify", 2);
        window("MPIX_Win_get_notify_request", 3);
        window("PMPIX_Win_get_notify_request", 3);
        transfer("MPIX_Put_notify");
        transfer("PMPIX_Put_notify");
        transfer("MPIX_Get_notify");
        transfer("PMPIX_Get_notify");
        numbers("MPIX_Put_notify_c");
        numbers("PMPIX_Put_notify_c");
    }
    return check_end();
}
