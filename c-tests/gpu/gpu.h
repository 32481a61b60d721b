// Memory of a GPU for the programs of this folder: that of a stand-in for a run-time library
// (c-tests/gpu_libraries), which is loaded by dlopen. Without libfompi (no CHECK_GPU in the
// environment) it is memory of the host, which every MPI reaches.

#ifndef GPU_H
#define GPU_H

#include "check.h"

#include <dlfcn.h>
#include <limits.h>

enum { DEVICE, MANAGED, PINNED };

static void *(*gpu_test_allocate)(int kind, size_t bytes);
static void *(*gpu_test_alias)(void *base);
static int (*gpu_test_pin)(void *base, size_t bytes);
static int (*gpu_test_unpin)(void *base);
static long (*gpu_test_copies)(void);

// Whether there is a GPU.
UNUSED static int has_gpu(void) { return getenv("CHECK_GPU") != NULL; }

// Loads a library that lies in the folder beside the program that has its name and `.gpu`.
UNUSED static void *gpu_load(const char *name)
{
    char path[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    CHECK(length > 0);
    path[length] = 0;
    snprintf(path + length, 64, ".gpu/%s", name);
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL)
        check_failed(__FILE__, __LINE__, "%s", dlerror());
    return library;
}

// Loads a stand-in, if there is a GPU.
UNUSED static void gpu_start(const char *name)
{
    if (!has_gpu())
        return;
    void *library = gpu_load(name);
    *(void **)&gpu_test_allocate = dlsym(library, "gpu_test_allocate");
    *(void **)&gpu_test_alias = dlsym(library, "gpu_test_alias");
    *(void **)&gpu_test_pin = dlsym(library, "gpu_test_pin");
    *(void **)&gpu_test_unpin = dlsym(library, "gpu_test_unpin");
    *(void **)&gpu_test_copies = dlsym(library, "gpu_test_copies");
    CHECK(gpu_test_allocate != NULL && gpu_test_alias != NULL && gpu_test_copies != NULL);
}

UNUSED static void *gpu_allocate(int kind, size_t bytes)
{
    return has_gpu() ? gpu_test_allocate(kind, bytes) : calloc(1, bytes);
}

// Where the processor reaches the bytes of an allocation, to fill and to check them.
UNUSED static void *on_host(void *base) { return has_gpu() ? gpu_test_alias(base) : base; }

UNUSED static long gpu_copies(void) { return has_gpu() ? gpu_test_copies() : 0; }

#endif
