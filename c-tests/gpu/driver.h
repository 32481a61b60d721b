// CUDA's driver library for the programs of this folder, by its functions in cuda.h, which need not
// be installed. A function that fails ends the program.
//
// The library is the stand-in in the program's folder, or with CHECK_GPU=system the one that the
// loader finds, a real one on a machine with a GPU.

#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#include "check.h"

#include <dlfcn.h>

typedef unsigned long long CUdeviceptr;

// CUdevice_attribute.
enum { VIRTUAL_MEMORY = 102, MEMORY_POOLS = 115 };
// Flags of cuMemHostAlloc and cuMemHostRegister: for all contexts, and the GPU may access it.
enum { PORTABLE = 1, DEVICEMAP = 2 };

typedef struct {
    int type, id; // 1: a device
} CUmemLocation;

typedef struct {
    int type, handles; // 1: pinned
    CUmemLocation location;
    void *windows;
    unsigned char flags[8];
} CUmemAllocationProp;

typedef struct {
    CUmemLocation location;
    int flags; // 3: read and write
} CUmemAccessDesc;

static void *driver_library, *driver_context;

// Calls a function of the driver with arguments whose types are those of the parameters in cuda.h.
#define DRIVER(name, types, ...) do { \
    int code_ = ((int (*) types)driver_function(#name))(__VA_ARGS__); \
    if (code_ != 0) \
        check_failed(__FILE__, __LINE__, "%s: CUDA error %d", #name, code_); \
} while (0)

UNUSED static void *driver_function(const char *name)
{
    void *function = dlsym(driver_library, name);
    if (function == NULL)
        check_failed(__FILE__, __LINE__, "libcuda.so.1 has no %s", name);
    return function;
}

// Whether the GPU can do something.
UNUSED static int driver_can(int attribute)
{
    int answer = 0;
    DRIVER(cuDeviceGetAttribute, (int *, int, int), &answer, attribute, 0);
    return answer;
}

// Initialises the driver, and makes the context of the first GPU current in this thread, unless
// CHECK_NO_CONTEXT is in the environment.
UNUSED static void driver_start(void *library)
{
    int device;
    driver_library = library;
    DRIVER(cuInit, (unsigned), 0);
    DRIVER(cuDeviceGet, (int *, int), &device, 0);
    DRIVER(cuDevicePrimaryCtxRetain, (void **, int), &driver_context, device);
    if (getenv("CHECK_NO_CONTEXT") == NULL)
        DRIVER(cuCtxSetCurrent, (void *), driver_context);
}

static void driver_enter(void) { DRIVER(cuCtxPushCurrent_v2, (void *), driver_context); }

static void driver_leave(void)
{
    void *context;
    DRIVER(cuCtxPopCurrent_v2, (void **), &context);
}

// Memory of the GPU that is mapped by the program.
static CUdeviceptr driver_mapped(size_t bytes)
{
    CUmemAllocationProp wanted = { .type = 1, .location = { 1, 0 } };
    CUmemAccessDesc access = { { 1, 0 }, 3 };
    CUdeviceptr address;
    unsigned long long handle;
    size_t granule;
    DRIVER(cuMemGetAllocationGranularity, (size_t *, const CUmemAllocationProp *, int), &granule,
           &wanted, 0);
    bytes = (bytes + granule - 1) / granule * granule;
    DRIVER(cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long),
           &address, bytes, 0, 0, 0);
    DRIVER(cuMemCreate,
           (unsigned long long *, size_t, const CUmemAllocationProp *, unsigned long long), &handle,
           bytes, &wanted, 0);
    DRIVER(cuMemMap, (CUdeviceptr, size_t, size_t, unsigned long long, unsigned long long), address,
           bytes, 0, handle, 0);
    DRIVER(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t), address, bytes,
           &access, 1);
    return address;
}

// Copies to memory of the GPU, and waits until the data are there.
static void driver_write(void *device, const void *host, size_t bytes)
{
    driver_enter();
    DRIVER(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t), (uintptr_t)device, host, bytes);
    DRIVER(cuCtxSynchronize, (void));
    driver_leave();
}

// Copies from memory of the GPU, without a wait for copies of others.
static void driver_read(void *host, const void *device, size_t bytes)
{
    driver_enter();
    DRIVER(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), host, (uintptr_t)device, bytes);
    driver_leave();
}

static void driver_register(void *base, size_t bytes)
{
    driver_enter();
    DRIVER(cuMemHostRegister_v2, (void *, size_t, unsigned), base, bytes, PORTABLE | DEVICEMAP);
    driver_leave();
}

static void driver_unregister(void *base)
{
    driver_enter();
    DRIVER(cuMemHostUnregister, (void *), base);
    driver_leave();
}

// The GPU itself copies between two places; `pinned` is memory of the host that it knows.
UNUSED static void driver_copies(void *to, const void *from, const void *pinned, size_t bytes)
{
    CUdeviceptr seen, there = (uintptr_t)to, here = (uintptr_t)from;
    driver_enter();
    DRIVER(cuMemHostGetDevicePointer_v2, (CUdeviceptr *, void *, unsigned), &seen, (void *)pinned,
           0);
    if (pinned == to)
        there = seen;
    else
        here = seen;
    DRIVER(cuMemcpyDtoD_v2, (CUdeviceptr, CUdeviceptr, size_t), there, here, bytes);
    DRIVER(cuCtxSynchronize, (void));
    driver_leave();
}

#endif
