// Memory of a GPU for the programs of this folder: that of CUDA's driver library (driver.h), a
// stand-in or a real one, or of the stand-ins for HIP and Level Zero (c-tests/gpu_libraries). A
// library is loaded by dlopen. Without libfompi (no CHECK_GPU in the environment) it is memory of
// the host, which every MPI reaches.

#ifndef GPU_H
#define GPU_H

#include "driver.h"

#include <limits.h>

// Kinds of memory: of the device, managed, and of the host and pinned; of the host, allocated by
// the C library and registered; of the device, from a pool and mapped by the program. Only CUDA has
// the last three here.
enum { DEVICE, MANAGED, PINNED, REGISTERED, POOL, MAPPED, GPU_KINDS };

static void *(*gpu_test_allocate)(int kind, size_t bytes);
static void *(*gpu_test_alias)(void *base);
static long (*gpu_test_copies)(void); // NULL: the library does not count them

// Whether there is a GPU.
UNUSED static int has_gpu(void) { return getenv("CHECK_GPU") != NULL; }

// Whether the libraries of GPUs are those of the system.
static int is_systems(void) { return has_gpu() && strcmp(getenv("CHECK_GPU"), "system") == 0; }

static int is_of_host(int kind) { return kind == PINNED || kind == REGISTERED; }

// Loads a library from the folder next to the program that has the program's name and `.gpu`.
UNUSED static void *gpu_load(const char *name)
{
    char path[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    CHECK(length > 0);
    path[length] = 0;
    snprintf(path + length, 64, ".gpu/%s", name);
    void *library = dlopen(is_systems() ? name : path, RTLD_NOW);
    if (library == NULL)
        check_failed(__FILE__, __LINE__, "%s", dlerror());
    return library;
}

// Loads a library and initialises it, if there is a GPU.
UNUSED static void gpu_start(const char *name)
{
    if (!has_gpu())
        return;
    void *library = gpu_load(name);
    *(void **)&gpu_test_copies = dlsym(library, "gpu_test_copies");
    if (strcmp(name, "libcuda.so.1") == 0) {
        driver_start(library);
        return;
    }
    *(void **)&gpu_test_allocate = dlsym(library, "gpu_test_allocate");
    *(void **)&gpu_test_alias = dlsym(library, "gpu_test_alias");
    CHECK(gpu_test_allocate != NULL && gpu_test_alias != NULL && gpu_test_copies != NULL);
}

// Whether there is memory of this kind.
UNUSED static int gpu_offers(int kind)
{
    if (!has_gpu() || kind <= PINNED)
        return 1;
    if (driver_library == NULL)
        return 0;
    return kind == REGISTERED || driver_can(kind == POOL ? MEMORY_POOLS : VIRTUAL_MEMORY);
}

UNUSED static void gpu_pin(void *base, size_t bytes)
{
    if (has_gpu())
        driver_register(base, bytes);
}

UNUSED static void gpu_unpin(void *base)
{
    if (has_gpu())
        driver_unregister(base);
}

// Memory of the host at the begin of a page.
static void *host_pages(size_t bytes)
{
    void *base = NULL;
    CHECK(posix_memalign(&base, 4096, (bytes + 4095) / 4096 * 4096) == 0);
    return memset(base, 0, bytes);
}

static void *driver_allocate(int kind, size_t bytes)
{
    CUdeviceptr address = 0;
    void *base = NULL;
    driver_enter();
    switch (kind) {
    case DEVICE:
        DRIVER(cuMemAlloc_v2, (CUdeviceptr *, size_t), &address, bytes);
        break;
    case MANAGED: // for all streams
        DRIVER(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned), &address, bytes, 1);
        break;
    case PINNED:
        DRIVER(cuMemHostAlloc, (void **, size_t, unsigned), &base, bytes, PORTABLE | DEVICEMAP);
        break;
    case REGISTERED:
        base = host_pages(bytes);
        driver_register(base, bytes);
        break;
    case POOL:
        DRIVER(cuMemAllocAsync, (CUdeviceptr *, size_t, void *), &address, bytes, NULL);
        DRIVER(cuCtxSynchronize, (void));
        break;
    default:
        address = driver_mapped(bytes);
    }
    driver_leave();
    return base != NULL ? base : (void *)(uintptr_t)address;
}

UNUSED static void *gpu_allocate(int kind, size_t bytes)
{
    if (!has_gpu())
        return host_pages(bytes);
    return driver_library != NULL ? driver_allocate(kind, bytes) : gpu_test_allocate(kind, bytes);
}

// Puts bytes into memory of a kind, as a program would that uses the GPU.
UNUSED static void gpu_write(int kind, void *base, const void *host, size_t bytes)
{
    if (!has_gpu() || is_of_host(kind))
        memcpy(base, host, bytes);
    else if (driver_library != NULL)
        driver_write(base, host, bytes);
    else
        memcpy(gpu_test_alias(base), host, bytes);
}

// Gets bytes out of it.
UNUSED static void gpu_read(int kind, void *host, void *base, size_t bytes)
{
    if (!has_gpu() || is_of_host(kind))
        memcpy(host, base, bytes);
    else if (driver_library != NULL)
        driver_read(host, base, bytes);
    else
        memcpy(host, gpu_test_alias(base), bytes);
}

UNUSED static long gpu_copies(void) { return gpu_test_copies == NULL ? 0 : gpu_test_copies(); }

#endif
