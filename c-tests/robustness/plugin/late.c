// A program that runs on its MPI by a module, and loads libfompi then. The module's windows work.
//
// arguments: the module, the file of the MPI, the file of libfompi

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

static void *opened(const char *path, int scope)
{
    void *library = dlopen(path, RTLD_NOW | scope);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    return library;
}

int main(int argc, char **argv)
{
    alarm(60);
    void *mpi = opened(argv[argc - 2], RTLD_LOCAL);
    void *module = mpi ? opened(argv[argc - 3], RTLD_LOCAL) : NULL;
    if (!module)
        return 1;
    ((void (*)(void))dlsym(module, "module_begin"))();
    if (!opened(argv[argc - 1], RTLD_GLOBAL))
        return 1;
    int works = ((int (*)(void))dlsym(module, "module_works"))();
    return ((int (*)(void))dlsym(mpi, "MPI_Finalize"))() || !works;
}
