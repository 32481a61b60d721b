// A stand-in for libcuda.so.1, with the prototypes of cuda.h. As the driver, it answers nothing
// before cuInit, knows only its own memory, and copies in a context only. CHECK_NO_CONTEXT in the
// environment leaves the threads without a current context, as those are that the program starts.

#include "memory.h"

typedef int CUresult;
typedef int CUpointer_attribute;
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef void *CUcontext, *CUstream;

static int is_initialised;
static __thread CUcontext stack[8];
static __thread int depth;
static char primary;

CUresult cuInit(unsigned flags)
{
    (void)flags;
    is_initialised = 1;
    if (getenv("CHECK_NO_CONTEXT") == NULL)
        stack[depth++] = &primary;
    return 0;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = depth == 0 ? NULL : stack[depth - 1];
    return is_initialised ? 0 : 3;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    if (depth == 8 || context == NULL)
        return 1;
    stack[depth++] = context;
    return 0;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    if (depth == 0)
        return 201;
    *context = stack[--depth];
    return 0;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (!is_initialised)
        return 3; // CUDA_ERROR_NOT_INITIALIZED
    struct memory *found = find((void *)(uintptr_t)address);
    if (found == NULL)
        return 1; // CUDA_ERROR_INVALID_VALUE
    switch (attribute) {
    case 1:
        *(CUcontext *)data = found->context;
        return 0;
    case 2:
        *(unsigned *)data = found->kind == PINNED ? 1 : 2;
        return 0;
    case 8:
        *(unsigned *)data = found->kind == MANAGED;
        return 0;
    case 9:
        *(int *)data = 0;
        return 0;
    default:
        return 1;
    }
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    if (depth == 0)
        return 201; // CUDA_ERROR_INVALID_CONTEXT
    return copy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    arrive();
    return 0;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    *address = (uintptr_t)allocate(DEVICE, bytes, &primary);
    return 0;
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    (void)flags;
    *address = (uintptr_t)allocate(MANAGED, bytes, &primary);
    return 0;
}

CUresult cuMemHostRegister_v2(void *base, size_t bytes, unsigned flags)
{
    (void)flags;
    return pin(base, bytes, &primary);
}

CUresult cuMemHostUnregister(void *base) { return unpin(base); }

void *gpu_test_allocate(int kind, size_t bytes)
{
    CUdeviceptr address = 0;
    if (!is_initialised)
        cuInit(0);
    switch (kind) {
    case DEVICE:
        cuMemAlloc_v2(&address, bytes);
        break;
    case MANAGED:
        cuMemAllocManaged(&address, bytes, 1);
        break;
    default:
        address = (uintptr_t)allocate(PINNED, bytes, &primary);
    }
    return (void *)(uintptr_t)address;
}

int gpu_test_pin(void *base, size_t bytes)
{
    if (!is_initialised)
        cuInit(0);
    return cuMemHostRegister_v2(base, bytes, 0);
}

int gpu_test_unpin(void *base) { return cuMemHostUnregister(base); }
