// What a program has said of its memory stays while a window is over it, and afterwards: rights
// (mprotect), advice about core dumps and children (madvise), and a userfaultfd of its own.
// MPI-4.1 sections 12.2.1 and 12.2.5.
// ranks: 2 3
// settings: FOMPI_ADOPT=always

#define _GNU_SOURCE
#include "adopted.h"
#include <sys/ioctl.h>
#include <sys/syscall.h>

enum { PAGES = 12 };

// Whether the mapping of an address has a flag, or a right, in /proc/self/smaps.
static int has_flag(const char *address, const char *flag)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[2000];
    unsigned long first, end;
    int here = 0, found = 0;
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
            here = (unsigned long)address >= first && (unsigned long)address < end;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, flag) != NULL;
    }
    fclose(maps);
    return found;
}

static void use(MPI_Win win, int page)
{
    const char value = 9;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    OK(MPI_Put(&value, 1, MPI_CHAR, next_rank(), page * PAGE, 1, MPI_CHAR, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void check_advice(int advice, const char *flag)
{
    for (int within = 0; within < 2; within++) {
        char *memory = touched_pages(PAGES);
        if (!within)
            CHECK_EQ(madvise(memory, PAGES * PAGE, advice), 0);
        MPI_Win win = window_over(memory, PAGES * PAGE, 1);
        if (within && madvise(memory, PAGES * PAGE, advice) != 0)
            flag = " "; // shared memory knows no such advice
        use(win, 1);
        CHECK(has_flag(memory, flag));
        OK(MPI_Win_free(&win));
        CHECK(has_flag(memory, flag));
        CHECK_EQ(memory[PAGE], 9);
    }
}

static void check_rights(void)
{
    char *memory = touched_pages(PAGES);
    MPI_Win win = window_over(memory, PAGES * PAGE, 1);
    check_adopted(memory);
    use(win, 1);
    CHECK_EQ(mprotect(memory + 2 * PAGE, PAGE, PROT_READ), 0);
    CHECK_EQ(mprotect(memory + 4 * PAGE, PAGE, PROT_NONE), 0);
    OK(MPI_Win_free(&win));
    CHECK(has_flag(memory + PAGE, " wr "));
    CHECK(has_flag(memory + 2 * PAGE, " rd ") && !has_flag(memory + 2 * PAGE, " wr "));
    CHECK(!has_flag(memory + 4 * PAGE, " rd "));
    CHECK_EQ(mprotect(memory, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
    CHECK(memory[PAGE] == 9 && memory[4 * PAGE] == 1);
}

// A userfaultfd that the program registers while the window lives works on when it is freed.
static void check_watch(void)
{
    const unsigned long new_api = 0xc018aa3f, new_register = 0xc020aa00, protect = 0xc018aa06;
    unsigned long long api[3] = {0xaa, 1 | 1 << 12, 0};
    char *memory = touched_pages(PAGES);
    MPI_Win win = window_over(memory, PAGES * PAGE, 1);
    use(win, 1);
    const int watch = (int)syscall(SYS_userfaultfd, 1 | 04000);
    unsigned long long range[4] = {(unsigned long)memory, PAGES * PAGE, 2, 0};
    if (watch < 0 || ioctl(watch, new_api, api) != 0 || ioctl(watch, new_register, range) != 0) {
        OK(MPI_Win_free(&win));
        return; // the system has none
    }
    OK(MPI_Win_free(&win));
    unsigned long long pages[3] = {(unsigned long)memory, PAGES * PAGE, 1};
    CHECK_EQ(ioctl(watch, protect, pages), 0);
    pages[2] = 0;
    CHECK_EQ(ioctl(watch, protect, pages), 0);
    close(watch);
    CHECK_EQ(memory[PAGE], 9);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_advice(MADV_DONTDUMP, " dd ");
    check_advice(MADV_DONTFORK, " dc ");
    check_advice(MADV_WIPEONFORK, " wf ");
    check_advice(MADV_NOHUGEPAGE, " nh ");
    check_rights();
    check_watch();
    return check_end();
}
