// Memory that was adopted as shared memory (FOMPI_ADOPT) before the run-time library of a GPU was
// loaded: pages that are registered for the GPU stay where they are when the window is freed, other
// pages become private again. After the load no memory is adopted. On 2 ranks.
// ranks: 2
// settings: FOMPI_ADOPT=always
// gpu: cuda

#include "gpu.h"

#include "adopted.h"

enum { PAGES = 8 };

static void make_window(void *memory, MPI_Win *win)
{
    OK(MPI_Win_create(memory, PAGES * PAGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, win));
}

int main(int argc, char **argv)
{
    MPI_Win wins[3];
    check_start(&argc, &argv);
    char *registered = touched_pages(PAGES), *other = touched_pages(PAGES);
    make_window(registered, &wins[0]);
    make_window(other, &wins[1]);
    check_adopted(registered);
    check_adopted(other);
    gpu_start("libcuda.so.1");
    gpu_pin(registered + 3 * PAGE, PAGE);
    OK(MPI_Win_free(&wins[1]));
    OK(MPI_Win_free(&wins[0]));
    if (has_gpu()) {
        check_adopted(registered);
        CHECK(!is_shared(other));
    }
    char *late = touched_pages(PAGES);
    make_window(late, &wins[2]);
    CHECK(!has_gpu() || !is_shared(late));
    OK(MPI_Win_free(&wins[2]));
    for (int i = 0; i < PAGES * PAGE; i++)
        CHECK(registered[i] == 1 && other[i] == 1 && late[i] == 1);
    return check_end();
}
