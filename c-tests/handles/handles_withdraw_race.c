// Rank 0 withdraws memory while all others access it without a pause, by puts, gets and accumulates, small and
// large: what it writes there after FOMPI_Mem_withdraw stays as it is, and a later access is an error. Some
// memory is unmapped behind that. Additions on another window go on meanwhile, and none is lost or done twice.
// docs/decisions/0033. The plain MPI has none.
// ranks: 2 3 4

#include "handles.h"
#include <sys/mman.h>

enum { BYTES = 1 << 16, TURNS = 60 };

static MPI_Win win, other;
static long *sums; // on the other window, of rank 0: for each rank

// Accesses the memory until it is withdrawn; returns how often it has tried.
static long access_until_withdrawn(FOMPI_Mem mem, int turn)
{
    static char buffer[BYTES];
    long done = 0, one = 1;
    memset(buffer, 0x11, sizeof buffer);
    for (;; done++) {
        int code, bytes = turn % 3 == 0 ? 8 : turn % 3 == 1 ? 3000 : BYTES;
        if (done % 7 == 3)
            code = FOMPI_Mem_accumulate(&one, 1, MPI_LONG, mem, 8 * (done % 512), MPI_BXOR, FOMPI_REMOTE);
        else if (done % 7 == 5)
            code = FOMPI_Mem_get(buffer, bytes, MPI_BYTE, mem, 0, FOMPI_BLOCKING);
        else
            code = FOMPI_Mem_put(buffer, bytes, MPI_BYTE, mem, 0, done % 2 ? 0 : FOMPI_REMOTE);
        OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, rank, 1, MPI_LONG, MPI_SUM, other));
        if (code == MPI_SUCCESS && done % 50 == 49)
            code = FOMPI_Complete(0, win);
        if (code != MPI_SUCCESS) {
            EXPECT(code, MPI_ERR_RMA_RANGE);
            // What is under way may be refused, too.
            code = FOMPI_Complete(FOMPI_ALL_RANKS, win);
            if (code != MPI_SUCCESS)
                EXPECT(code, MPI_ERR_RMA_RANGE);
            OK(FOMPI_Complete(FOMPI_ALL_RANKS, win));
            OK(MPI_Win_flush(0, other));
            return done + 1;
        }
    }
}

static void pause_for(int turn)
{
    usleep((unsigned)(turn * 37 % 5) * 300);
}

static void expect_bytes(const unsigned char *memory, int value)
{
    for (int i = 0; i < BYTES; i++)
        CHECK_EQ(memory[i], value);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (!has_handles())
        return check_end();
    win = dynamic_window();
    OK(MPI_Win_allocate(64 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &sums, &other));
    memset(sums, 0, 64 * sizeof(long));
    OK(MPI_Win_lock_all(0, other));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    long tried = 0, unused = 0, sum = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        char packed[FOMPI_MEM_BYTES];
        unsigned char *memory = NULL;
        FOMPI_Mem mem;
        int is_allocated = turn % 2;
        if (rank == 0) {
            if (is_allocated) {
                OK(FOMPI_Mem_allocate(BYTES, MPI_INFO_NULL, win, &memory, &mem));
            } else {
                memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                CHECK(memory != MAP_FAILED);
                OK(FOMPI_Mem_expose(memory, BYTES, MPI_INFO_NULL, win, &mem));
            }
            OK(FOMPI_Mem_pack(mem, packed));
        }
        OK(MPI_Bcast(packed, FOMPI_MEM_BYTES, MPI_BYTE, 0, MPI_COMM_WORLD));
        if (rank == 0) {
            pause_for(turn);
            OK(FOMPI_Mem_withdraw(&mem));
            memset(memory, 0x77, BYTES);
            usleep(500);
            expect_bytes(memory, 0x77);
            if (!is_allocated && turn % 4 == 0)
                CHECK(munmap(memory, BYTES) == 0);
        } else {
            OK(FOMPI_Mem_unpack(packed, win, &mem));
            tried += access_until_withdrawn(mem, turn);
            OK(FOMPI_Mem_release(&mem));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) {
            if (is_allocated || turn % 4 != 0)
                expect_bytes(memory, 0x77);
            if (is_allocated)
                OK(MPI_Free_mem(memory));
            else if (turn % 4 != 0)
                CHECK(munmap(memory, BYTES) == 0);
        }
    }
    OK(MPI_Fetch_and_op(&unused, &sum, MPI_LONG, 0, rank, MPI_NO_OP, other));
    OK(MPI_Win_unlock_all(other));
    CHECK_EQ(sum, tried);
    OK(MPI_Win_free(&other));
    OK(MPI_Win_free(&win));
    return check_end();
}
