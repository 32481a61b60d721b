// 3,000 pieces of memory of mixed sizes alive at once are apart from each other and take few file
// descriptors; 10,000 that are allocated and freed in turn leave neither descriptors nor memory
// allocated. MPI-4.1 section 9.2.
// ranks: 1 2

#include "check.h"
#include "resident.h"

#include <dirent.h>

enum { ALIVE = 3000, IN_A_ROW = 10000, LARGE = 64 << 20 };

static int descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder != NULL);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static size_t size_of(int i) { return (size_t)i * 7919 % 30000; }

static void many_alive(void)
{
    static unsigned char *memory[ALIVE];
    int before = descriptors();
    for (int i = 0; i < ALIVE; i++) {
        OK(MPI_Alloc_mem((MPI_Aint)size_of(i), MPI_INFO_NULL, &memory[i]));
        memset(memory[i], i % 251, size_of(i));
    }
    CHECK(descriptors() <= before + 8);
    for (int i = 0; i < ALIVE; i++)
        for (size_t at = 0; at < size_of(i); at += 17)
            CHECK_EQ(memory[i][at], i % 251);
    // The odd ones upwards, then the even ones downwards.
    for (int i = 1; i < ALIVE; i += 2)
        OK(MPI_Free_mem(memory[i]));
    for (int i = ALIVE - 2; i >= 0; i -= 2)
        OK(MPI_Free_mem(memory[i]));
}

static void many_in_a_row(void)
{
    int descriptors_before = descriptors();
    long resident_before = resident();
    for (int i = 0; i < IN_A_ROW; i++) {
        char *memory;
        size_t bytes = i % 1000 == 999 ? LARGE : size_of(i) * (i % 10 == 0 ? 40 : 1);
        OK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory));
        if (bytes > 0)
            memory[0] = memory[bytes - 1] = 1;
        OK(MPI_Free_mem(memory));
    }
    CHECK(descriptors() <= descriptors_before + 8);
    CHECK(resident() <= resident_before + LARGE / 2);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    many_alive();
    many_in_a_row();
    return check_end();
}
