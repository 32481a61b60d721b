// Many threads of each process use memory handles at once, more than a process can announce. One thread of
// each process exposes other memory, which the process accesses itself, and withdraws it meanwhile: what is
// written there afterwards stays. docs/decisions/0033. The plain MPI has none.
// ranks: 2 4

#include "handles.h"
#include "threads.h"

enum { THREADS = 12, TURNS = 200, WORDS = 64 };

static MPI_Win win;
static FOMPI_Mem mems[64];

static void count(int thread)
{
    long one = 1, before, got;
    for (int turn = 0; turn < TURNS; turn++) {
        int to = (rank + turn) % size;
        OK(FOMPI_Mem_fetch_and_op(&one, &before, MPI_LONG, mems[to], 0, MPI_SUM, FOMPI_BLOCKING));
        CHECK(before >= 0 && before < (long)size * THREADS * TURNS);
        MPI_Aint own = 8 * (1 + rank * THREADS + thread);
        OK(FOMPI_Mem_put(&before, 1, MPI_LONG, mems[to], own, FOMPI_REMOTE));
        OK(FOMPI_Mem_get(&got, 1, MPI_LONG, mems[to], own, FOMPI_BLOCKING));
        CHECK_EQ(got, before);
    }
}

// Other threads put to memory that one thread withdraws, by a handle of their own.
static char packed[FOMPI_MEM_BYTES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_there, is_over;

static void withdraw_again_and_again(void)
{
    static long memory[WORDS];
    for (int turn = 0; turn < TURNS; turn++) {
        FOMPI_Mem mem;
        OK(FOMPI_Mem_expose(memory, sizeof memory, MPI_INFO_NULL, win, &mem));
        pthread_mutex_lock(&lock);
        OK(FOMPI_Mem_pack(mem, packed));
        is_there = 1;
        pthread_mutex_unlock(&lock);
        usleep(50);
        OK(FOMPI_Mem_withdraw(&mem));
        for (int i = 0; i < WORDS; i++)
            memory[i] = -2;
        usleep(20);
        for (int i = 0; i < WORDS; i++)
            CHECK_EQ(memory[i], -2);
    }
    pthread_mutex_lock(&lock);
    is_over = 1;
    pthread_mutex_unlock(&lock);
}

static void access_until_over(void)
{
    long data[WORDS];
    memset(data, 1, sizeof data);
    for (int over = 0; !over;) {
        char copy[FOMPI_MEM_BYTES];
        pthread_mutex_lock(&lock);
        int there = is_there;
        over = is_over;
        memcpy(copy, packed, sizeof copy);
        pthread_mutex_unlock(&lock);
        if (!there)
            continue;
        FOMPI_Mem mem;
        OK(FOMPI_Mem_unpack(copy, win, &mem));
        int code = FOMPI_Mem_put(data, WORDS, MPI_LONG, mem, 0, FOMPI_REMOTE);
        if (code != MPI_SUCCESS)
            EXPECT(code, MPI_ERR_RMA_RANGE);
        OK(FOMPI_Mem_release(&mem));
    }
}

static void *work(void *number)
{
    int thread = *(int *)number;
    if (thread == THREADS)
        withdraw_again_and_again();
    else if (thread > THREADS)
        access_until_over();
    else
        count(thread);
    return NULL;
}

int main(int argc, char **argv)
{
    int has_threads = check_start_threads(&argc, &argv);
    if (has_handles() && has_threads) {
        void *base = NULL;
        win = dynamic_window();
        share(win, &base, 8 * (1 + size * THREADS), mems);
        memset(base, 0, (size_t)(8 * (1 + size * THREADS)));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        run_numbered_threads(THREADS + 3, work);
        OK(FOMPI_Complete(FOMPI_ALL_RANKS, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        long sum = *(long *)base, all;
        OK(MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
        CHECK_EQ(all, (long)size * THREADS * TURNS);
        unshare(mems);
        OK(MPI_Free_mem(base));
        OK(MPI_Win_free(&win));
    }
    return check_end();
}
