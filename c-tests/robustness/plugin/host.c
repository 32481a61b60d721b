// A program that runs on its MPI and loads a module that is linked with libfompi. The module's
// windows work, in the module and in the program, whichever way the module finds its functions.
//
// arguments: the module, and whether it can be linked with its own libraries first (RTLD_DEEPBIND),
// which a module of Open MPI cannot, because programs have copies of Open MPI's data

#define _GNU_SOURCE
#include "../robust.h"
#include <dlfcn.h>

static void load(const char *path, int flags)
{
    void *module = dlopen(path, flags);
    if (!module)
        wrong(__LINE__, "%s", dlerror());
    int (*works)(void) = (int (*)(void))dlsym(module, "module_works");
    MPI_Win (*window)(int **) = (MPI_Win(*)(int **))dlsym(module, "module_window");
    CHECK(works && window && works());
    int *base, left = (rank + size - 1) % size;
    MPI_Win win = window(&base);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK(*base == left);
    OK(MPI_Win_free(&win));
    CHECK(dlclose(module) == 0);
}

int main(int argc, char **argv)
{
    start(60, &argc, &argv);
    if (atoi(argv[2]))
        load(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    load(argv[1], RTLD_NOW | RTLD_LOCAL);
    load(argv[1], RTLD_NOW | RTLD_GLOBAL);
    MPI_Finalize();
    return 0;
}
