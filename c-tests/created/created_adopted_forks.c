// Children of a process whose window is adopted: by fork and _Fork, which have memory of their own,
// and by system, popen and posix_spawn, which run another program. Nothing that one stores reaches
// the other; the window goes on. MPI-4.1 section 12.2.1. Where an RDMA device reaches the window, its
// pages are registered, and libibverbs takes such pages away from children (ibv_fork_init, which UCX
// calls in each process) until the library gives them back; MPICH 4.0.2 alone over Soft-RoCE
// (UCX_TLS=rc_verbs,ud_verbs,self) does not, and its children end by SIGSEGV. Before Linux 5.12 and
// with a libibverbs before 35, children lack them with the library, too.
// ranks: 1 2 3
// settings: FOMPI_ADOPT=always

#define _GNU_SOURCE
#include "adopted.h"
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>

enum { PAGES = 30, TURNS = 10 };

extern char **environ;

// In a child: no MPI_Abort, which is the parent's.
#define CHILD(condition) do { if (!(condition)) _exit(__LINE__ % 255 + 1); } while (0)

static void joined(pid_t child)
{
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

// The child changes each page, and sees neither what its parent nor what a peer stores.
static void check_child(pid_t (*make)(void), MPI_Win win, volatile char *memory, int turn)
{
    int gate[2];
    const char value = (char)(turn + 1);
    char byte;
    CHECK_EQ(pipe(gate), 0);
    memset((char *)memory, value, PAGES * PAGE);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    pid_t child = make();
    CHECK(child >= 0);
    if (child == 0) {
        CHILD(read(gate[0], &byte, 1) == 1);
        for (int n = 0; n < PAGES; n++) {
            CHILD(memory[n * PAGE] == value && memory[n * PAGE + 9] == value);
            memory[n * PAGE + 20] = 111;
        }
        _exit(0);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int n = 0; n < PAGES; n++) {
        const char put = (char)(60 + n);
        OK(MPI_Put(&put, 1, MPI_BYTE, next_rank(), n * PAGE, 1, MPI_BYTE, win));
        OK(MPI_Win_flush(next_rank(), win));
        memory[n * PAGE + 9] = 99;
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(write(gate[1], "", 1), 1);
    joined(child);
    for (int n = 0; n < PAGES; n++) {
        CHECK_EQ(memory[n * PAGE], 60 + n);
        CHECK_EQ(memory[n * PAGE + 9], 99);
        CHECK_EQ(memory[n * PAGE + 20], value);
    }
    close(gate[0]);
    close(gate[1]);
}

static void programs(void)
{
    char *arguments[] = {"true", NULL};
    pid_t child;
    CHECK_EQ(system("exit 0"), 0);
    FILE *pipe = popen("exit 0", "r");
    CHECK(pipe != NULL);
    CHECK_EQ(pclose(pipe), 0);
    CHECK_EQ(posix_spawnp(&child, "true", NULL, NULL, arguments, environ), 0);
    joined(child);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    void *found = dlsym(RTLD_DEFAULT, "_Fork"); // glibc 2.34
    pid_t (*bare)(void) = NULL;
    memcpy(&bare, &found, sizeof bare);
    char *memory = touched_pages(PAGES);
    MPI_Win win = window_over(memory, PAGES * PAGE, 1);
    check_adopted(memory);
    for (int turn = 0; turn < TURNS; turn++) {
        check_child(turn % 2 && bare != NULL ? bare : fork, win, memory, turn);
        programs();
    }
    OK(MPI_Win_free(&win));
    CHECK(!is_shared(memory));
    CHECK_EQ(memory[PAGE], 61);
    return check_end();
}
