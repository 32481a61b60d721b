// A program that loads an MPI and a module that is linked with libfompi. It unloads the module and
// ends MPI then, which calls what the library left with it. The windows are those of a thread that
// has ended: variables of a living one would keep the library loaded.
//
// arguments: the module, the file of the MPI

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int (*works)(void);
static int worked;

static void *work(void *unused)
{
    worked = works() && works();
    return unused;
}

int main(int argc, char **argv)
{
    alarm(60);
    void *mpi = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    void *module = mpi ? dlopen(argv[argc - 2], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!module) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void (*begin)(void) = (void (*)(void))dlsym(module, "module_begin");
    int (*finalize)(void) = (int (*)(void))dlsym(mpi, "MPI_Finalize");
    works = (int (*)(void))dlsym(module, "module_works");
    begin();
    pthread_t thread;
    int fails = pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL);
    fails |= !worked || dlclose(module);
    return finalize() || fails;
}
