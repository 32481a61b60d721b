// A stand-in for libamdhip64.so, with the prototypes of hip_runtime_api.h. CHECK_HIP_MAJOR in the
// environment chooses between the numbers of ROCm 5 and those since ROCm 6 (6 by default).

#include "memory.h"

typedef int hipError_t;
typedef struct {
    int type, device;
    void *devicePointer, *hostPointer;
    int isManaged;
    unsigned allocationFlags;
} hipPointerAttribute_t;

static __thread hipError_t last_error;

static int is_new(void)
{
    const char *major = getenv("CHECK_HIP_MAJOR");
    return major == NULL || atoi(major) >= 6;
}

static hipError_t answer(hipError_t code)
{
    if (code != 0)
        last_error = code;
    return code;
}

hipError_t hipPeekAtLastError(void) { return last_error; }

hipError_t hipGetLastError(void)
{
    hipError_t code = last_error;
    last_error = 0;
    return code;
}

hipError_t hipRuntimeGetVersion(int *version)
{
    *version = is_new() ? 60032830 : 50731921;
    return 0;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *address)
{
    static const int old_types[] = { [DEVICE] = 1, [MANAGED] = 1, [PINNED] = 0 };
    static const int new_types[] = { [DEVICE] = 2, [MANAGED] = 3, [PINNED] = 1 };
    struct memory *found = find(address);
    memset(attributes, 0, sizeof *attributes);
    if (found == NULL)
        return is_new() ? 0 : answer(1); // hipErrorInvalidValue
    attributes->type = (is_new() ? new_types : old_types)[found->kind];
    attributes->isManaged = found->kind == MANAGED;
    attributes->devicePointer = (void *)address;
    return 0;
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    return kind < 0 || kind > 4 ? answer(21) : answer(copy(to, from, bytes));
}

hipError_t hipStreamSynchronize(void *stream)
{
    (void)stream;
    arrive();
    return 0;
}

void *gpu_test_allocate(int kind, size_t bytes) { return allocate(kind, bytes, NULL); }
