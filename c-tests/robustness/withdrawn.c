// Rank 0 withdraws memory by FOMPI_Mem_withdraw after the last rank has been killed by SIGKILL in the middle
// of an access to it: the call returns, and a later access of rank 1 is an error.
// usage: withdrawn HOW FILE, to which the survivors append a line each
//   inside      the victim dies in the middle of a copy into mapped memory
//   meanwhile   a thread of the victim kills it while it puts all the time

#include "robust.h"

#include "../../include/fompi_rma.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

enum { BYTES = 4 << 20 };

#pragma weak FOMPI_Mem_allocate
#pragma weak FOMPI_Mem_pack
#pragma weak FOMPI_Mem_unpack
#pragma weak FOMPI_Mem_put
#pragma weak FOMPI_Mem_withdraw

static char *origin;

static void die(int signal_number)
{
    (void)signal_number;
    kill(getpid(), SIGKILL);
}

static void *die_meanwhile(void *unused)
{
    usleep(300000);
    die(0);
    return unused;
}

// The victim reads its origin up to a page that it may not read.
static void stop_inside(void)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *at = (char *)(((uintptr_t)origin + BYTES / 2) & ~(page - 1));
    signal(SIGSEGV, die);
    CHECK(mprotect(at, page, PROT_NONE) == 0);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
    signal(SIGUSR1, SIG_IGN); // MPICH's launcher tells the survivors so
    start(30, &argc, &argv);
    const char *how = argc > 1 ? argv[1] : "inside";
    const int victim = size - 1;
    char packed[FOMPI_MEM_BYTES], text[100] = "";
    void *memory = NULL;
    FOMPI_Mem mem;
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    origin = calloc(1, BYTES);
    if (rank == 0) {
        OK(FOMPI_Mem_allocate(BYTES, MPI_INFO_NULL, win, &memory, &mem));
        OK(FOMPI_Mem_pack(mem, packed));
    }
    OK(MPI_Bcast(packed, FOMPI_MEM_BYTES, MPI_BYTE, 0, MPI_COMM_WORLD));
    if (rank != 0) {
        OK(FOMPI_Mem_unpack(packed, win, &mem));
        OK(FOMPI_Mem_put(origin, 8, MPI_BYTE, mem, 0, FOMPI_REMOTE));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = now();
    if (rank == victim) {
        pthread_t killer;
        if (strcmp(how, "inside") == 0)
            stop_inside();
        else
            pthread_create(&killer, NULL, die_meanwhile, NULL);
        for (;;)
            OK(FOMPI_Mem_put(origin, BYTES, MPI_BYTE, mem, 0, FOMPI_REMOTE));
    }
    if (rank == 0) {
        usleep(700000); // the victim is dead
        OK(FOMPI_Mem_withdraw(&mem));
        strcpy(text, "withdrawn");
    } else {
        int code = MPI_SUCCESS;
        while (code == MPI_SUCCESS && now() - began < 20)
            code = FOMPI_Mem_put(origin, 8, MPI_BYTE, mem, 0, FOMPI_REMOTE);
        snprintf(text, sizeof text, "%s", class_of(code) == MPI_ERR_RMA_RANGE ? "refused" : "no error");
        if (code != MPI_SUCCESS && class_of(code) != MPI_ERR_RMA_RANGE) {
            int length;
            char reason[MPI_MAX_ERROR_STRING];
            MPI_Error_string(code, reason, &length);
            snprintf(text, sizeof text, "%.90s", reason);
        }
    }
    FILE *file = fopen(argc > 2 ? argv[2] : "/dev/stdout", "a");
    fprintf(file, "rank %d after %.1f s: %s\n", rank, now() - began, text);
    fclose(file);
    usleep(1500000); // both survivors have written before a launcher sees the first one leave
    _exit(0); // MPI_Finalize would wait for the victim
}
