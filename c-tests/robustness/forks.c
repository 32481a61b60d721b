// Children of fork(2): memory of MPI_Alloc_mem is each process's own from the fork on, as it was at
// that moment; memory of windows is shared, as on the plain MPIs. Nothing hangs, whatever other
// threads do meanwhile. Children that run another program cost what they cost.
//
// arguments: own | shared | created | sparse | ends | programs, and what the plain MPIs do not promise
// of calls in a child: generations | threads TURNS

#include "robust.h"
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { BYTES = 40 << 20 };

extern char **environ;

// In a child: no MPI_Abort, which is the parent's.
#define CHILD(condition) do { if (!(condition)) _exit(__LINE__ % 255 + 1); } while (0)

static void *allocate(MPI_Aint bytes)
{
    void *base;
    OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &base));
    return base;
}

// The child ended well, by itself.
static void joined(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (status != 0)
        wrong(__LINE__, "a child ended with status %#x", status);
}

// A word that both see, to wait for each other.
static volatile int *shared_word(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    return page;
}

static void await(volatile int *word, int value)
{
    while (*word < value)
        usleep(100);
}

// Each writes, and sees its own. The parent writes at once, also where nobody had written before.
static void own(void)
{
    volatile int *step = shared_word();
    volatile char *p = allocate(BYTES);
    for (int at = 0; at < BYTES / 2; at += 4096)
        p[at] = 1 + at / 4096 % 100;
    pid_t child = fork();
    if (child == 0) {
        await(step, 1);
        for (int at = 0; at < BYTES; at += 4096)
            CHILD(p[at] == (at < BYTES / 2 ? 1 + at / 4096 % 100 : 0));
        p[7] = 66;
        *step = 2;
        await(step, 3);
        CHILD(p[7] == 66 && p[8] == 0);
        _exit(0);
    }
    for (int at = 0; at < BYTES; at += 4096)
        p[at] = 101;
    *step = 1;
    await(step, 2);
    CHECK(p[7] == 0);
    p[7] = 77;
    p[8] = 78;
    *step = 3;
    joined(child);
    CHECK(p[7] == 77 && p[0] == 101);
    OK(MPI_Free_mem((void *)p));
}

// Windows share no page with it.
static void shared(void)
{
    enum { MANY = 50 };
    volatile char *small[MANY], *window[MANY];
    MPI_Win wins[MANY];
    for (int i = 0; i < MANY; i++) {
        small[i] = allocate(100);
        OK((i % 2 ? MPI_Win_allocate_shared : MPI_Win_allocate)(
            100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window[i], &wins[i]));
        small[i][0] = window[i][0] = 1;
    }
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < MANY; i++) {
            CHILD(small[i][0] == 1 && window[i][0] == 1);
            small[i][0] = window[i][0] = 2;
        }
        _exit(0);
    }
    joined(child);
    for (int i = 0; i < MANY; i++) {
        CHECK(small[i][0] == 1 && window[i][0] == 2);
        OK(MPI_Win_free(&wins[i]));
        OK(MPI_Free_mem((void *)small[i]));
    }
}

// A window over memory of MPI_Alloc_mem works on in the parent; the child has a copy.
static void created(void)
{
    int *p = allocate(64), left = (rank + size - 1) % size;
    MPI_Win win;
    *p = -1;
    OK(MPI_Win_create(p, 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    volatile int *step = shared_word();
    pid_t child = fork();
    if (child == 0) {
        await(step, 1);
        CHILD(*p == -1);
        *p = -2;
        _exit(0);
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    *step = 1;
    joined(child);
    CHECK(*p == left);
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(p));
}

// A large range that is hardly touched costs little in the child.
static void sparse(void)
{
    volatile char *p = allocate((MPI_Aint)1 << 30);
    for (MPI_Aint at = 0; at < (MPI_Aint)1 << 30; at += 64 << 20)
        p[at + 5] = 5;
    pid_t child = fork();
    if (child == 0) {
        for (MPI_Aint at = 0; at < (MPI_Aint)1 << 30; at += 64 << 20)
            CHILD(p[at + 5] == 5 && p[at + 4096] == 0);
        _exit(0);
    }
    joined(child);
    OK(MPI_Free_mem((void *)p));
}

// A child frees what it inherited, allocates, and has a child of its own.
static void generations(void)
{
    char *p = allocate(5000), *q = allocate(100);
    *p = *q = 1;
    pid_t child = fork();
    if (child == 0) {
        char *mine;
        CHILD(MPI_Free_mem(q) == MPI_SUCCESS);
        CHILD(MPI_Alloc_mem(9000, MPI_INFO_NULL, &mine) == MPI_SUCCESS && mine != q);
        *p = *mine = 2;
        pid_t grandchild = fork();
        if (grandchild == 0) {
            CHILD(*p == 2 && *mine == 2);
            *p = *mine = 3;
            CHILD(MPI_Free_mem(mine) == MPI_SUCCESS && MPI_Free_mem(p) == MPI_SUCCESS);
            _exit(0);
        }
        int status;
        CHILD(waitpid(grandchild, &status, 0) == grandchild && status == 0);
        CHILD(*p == 2 && *mine == 2 && MPI_Free_mem(mine) == MPI_SUCCESS);
        _exit(0);
    }
    joined(child);
    CHECK(*p == 1 && *q == 1);
    char *r = allocate(100);
    CHECK(r != q && r != p);
    OK(MPI_Free_mem(r));
    OK(MPI_Free_mem(p));
    OK(MPI_Free_mem(q));
}

// A child that is killed while it copies, or ends, does not keep its parent.
static void ends(void)
{
    char *p = allocate(BYTES);
    memset(p, 1, BYTES);
    for (int turn = 0; turn < 5; turn++) {
        pid_t child = fork();
        if (child == 0) {
            raise(SIGKILL);
            _exit(1);
        }
        CHECK(waitpid(child, NULL, 0) == child);
    }
    OK(MPI_Free_mem(p));
}

static volatile int stop;

static void *churn(void *unused)
{
    for (unsigned turn = 0; !stop; turn++) {
        char *p = allocate(1 + turn * 7919 % 50000);
        *p = 1;
        OK(MPI_Free_mem(p));
    }
    return unused;
}

static void threads(int turns)
{
    enum { MANY = 3 };
    pthread_t thread[MANY];
    char *p = allocate(10000);
    for (int i = 0; i < MANY; i++)
        CHECK(pthread_create(&thread[i], NULL, churn, NULL) == 0);
    for (int turn = 0; turn < turns; turn++) {
        *p = (char)turn;
        pid_t child = fork();
        if (child == 0) {
            char *mine;
            CHILD(*p == (char)turn && MPI_Alloc_mem(5000, MPI_INFO_NULL, &mine) == MPI_SUCCESS);
            *mine = *p = 99;
            CHILD(MPI_Free_mem(mine) == MPI_SUCCESS && MPI_Free_mem(p) == MPI_SUCCESS);
            _exit(0);
        }
        joined(child);
        CHECK(*p == (char)turn);
    }
    stop = 1;
    for (int i = 0; i < MANY; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    OK(MPI_Free_mem(p));
}

static int forks_seen;

static void see_fork(void) { forks_seen++; }

// Other programs, with memory allocated. Only fork itself calls handlers, the library's among them.
static void programs(void)
{
    char *p = allocate(BYTES), *arguments[] = {"true", NULL};
    memset(p, 1, BYTES);
    CHECK(pthread_atfork(see_fork, NULL, NULL) == 0);
    pid_t child;
    CHECK(posix_spawnp(&child, "true", NULL, NULL, arguments, environ) == 0);
    joined(child);
    child = vfork();
    if (child == 0) {
        execvp("true", arguments);
        _exit(1);
    }
    joined(child);
    CHECK(system("true") == 0);
    FILE *pipe = popen("true", "r");
    CHECK(pipe && pclose(pipe) == 0 && forks_seen == 0);
    child = fork();
    if (child == 0) {
        execvp("true", arguments);
        _exit(1);
    }
    joined(child);
    CHECK(forks_seen == 1);
    OK(MPI_Free_mem(p));
}

int main(int argc, char **argv)
{
    int provided;
    alarm(90);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argv[1];
    if (!strcmp(what, "threads"))
        threads(atoi(argv[2]));
    else if (!strcmp(what, "programs"))
        programs();
    else if (!strcmp(what, "own"))
        own();
    else if (!strcmp(what, "shared"))
        shared();
    else if (!strcmp(what, "created"))
        created();
    else if (!strcmp(what, "sparse"))
        sparse();
    else if (!strcmp(what, "generations"))
        generations();
    else
        ends();
    MPI_Finalize();
    return 0;
}
