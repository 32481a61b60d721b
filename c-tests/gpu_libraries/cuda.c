// A stand-in for libcuda.so.1, with the prototypes of cuda.h. As the driver, it answers nothing
// before cuInit, knows only its own memory, and copies in a context only.

#include "memory.h"

typedef int CUresult;
typedef int CUpointer_attribute, CUdevice_attribute;
typedef unsigned long long CUdeviceptr, CUmemGenericAllocationHandle;
typedef int CUdevice;
typedef void *CUcontext, *CUstream;

enum { SUCCESS, INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201 };

static int is_initialised;
static __thread CUcontext stack[8];
static __thread int depth;
static char primary;

// What CUDA says of a call before cuInit, and of one that needs a context and has none.
static CUresult initialised(void) { return is_initialised ? SUCCESS : NOT_INITIALIZED; }
static CUresult in_context(void)
{
    return !is_initialised ? NOT_INITIALIZED : depth == 0 ? INVALID_CONTEXT : SUCCESS;
}

static void *at(CUdeviceptr address) { return (void *)(uintptr_t)address; }

CUresult cuInit(unsigned flags)
{
    (void)flags;
    is_initialised = 1;
    return SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return initialised();
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? initialised() : 101; // CUDA_ERROR_INVALID_DEVICE
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    static const char own[] = "stand-in of c-tests/gpu_libraries";
    (void)device;
    if (length < (int)sizeof own)
        return INVALID_VALUE;
    memcpy(name, own, sizeof own);
    return initialised();
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    *value = attribute == 83 || attribute == 102 || attribute == 115; // managed, mapped, pools
    return initialised();
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    *context = &primary;
    return initialised();
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    return initialised();
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    (void)device;
    *flags = 0;
    *active = 1;
    return initialised();
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    depth = context != NULL;
    stack[0] = context;
    return initialised();
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = depth == 0 ? NULL : stack[depth - 1];
    return initialised();
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    if (depth == 8 || context == NULL)
        return INVALID_VALUE;
    stack[depth++] = context;
    return SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    if (depth == 0)
        return INVALID_CONTEXT;
    *context = stack[--depth];
    return SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    arrive();
    return in_context();
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (!is_initialised)
        return NOT_INITIALIZED;
    struct memory *found = find(at(address));
    if (found == NULL)
        return INVALID_VALUE;
    switch (attribute) {
    case 1:
        *(CUcontext *)data = found->context;
        return SUCCESS;
    case 2:
        *(unsigned *)data = found->kind == PINNED ? 1 : 2;
        return SUCCESS;
    case 8:
        *(unsigned *)data = found->kind == MANAGED;
        return SUCCESS;
    case 9:
        *(int *)data = 0;
        return SUCCESS;
    default:
        return INVALID_VALUE;
    }
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    CUresult code = in_context();
    return code != SUCCESS ? code : copy(at(to), at(from), bytes);
}

// The copies of the test itself.
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return in_context() != SUCCESS ? in_context() : move(at(to), from, bytes);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return in_context() != SUCCESS ? in_context() : move(to, at(from), bytes);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    if (find(at(to)) == NULL || find(at(from)) == NULL)
        return INVALID_VALUE;
    return in_context() != SUCCESS ? in_context() : move(at(to), at(from), bytes);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    arrive();
    return SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    *address = (uintptr_t)allocate(DEVICE, bytes, &primary);
    return in_context();
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    (void)flags;
    *address = (uintptr_t)allocate(MANAGED, bytes, &primary);
    return in_context();
}

// Memory of a pool has no context.
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    (void)stream;
    *address = (uintptr_t)allocate(DEVICE, bytes, NULL);
    return in_context();
}

// Memory that the program maps: addresses, memory, and both together.
enum { GRANULE = 1 << 16 };

CUresult cuMemGetAllocationGranularity(size_t *granule, const void *wanted, int which)
{
    (void)wanted, (void)which;
    *granule = GRANULE;
    return initialised();
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
    (void)alignment, (void)hint, (void)flags;
    *address = (uintptr_t)reserve(bytes);
    return bytes % GRANULE != 0 ? INVALID_VALUE : initialised();
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const void *wanted,
                     unsigned long long flags)
{
    (void)wanted, (void)flags;
    *handle = bytes;
    return bytes % GRANULE != 0 ? INVALID_VALUE : initialised();
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    (void)flags;
    if (bytes != handle || offset != 0)
        return INVALID_VALUE;
    put_behind(at(address), DEVICE, bytes, NULL);
    return initialised();
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const void *access, size_t count)
{
    (void)bytes, (void)access;
    return count == 1 && find(at(address)) != NULL ? SUCCESS : INVALID_VALUE;
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    (void)flags;
    *address = allocate(PINNED, bytes, &primary);
    return in_context();
}

CUresult cuMemHostRegister_v2(void *base, size_t bytes, unsigned flags)
{
    (void)flags;
    return in_context() != SUCCESS ? in_context() : pin(base, bytes, &primary);
}

CUresult cuMemHostUnregister(void *base) { return unpin(base); }

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *base, unsigned flags)
{
    (void)flags;
    *address = (uintptr_t)base;
    return find(base) == NULL ? INVALID_VALUE : in_context();
}
