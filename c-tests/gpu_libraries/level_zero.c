// A stand-in for libze_loader.so.1, with the prototypes of ze_api.h. CHECK_ZE_STRICT in the environment
// makes it answer only for memory of the context that it is asked with, as the specification
// allows; without it any context of the driver will do, as with the driver of Intel.

#include "memory.h"

typedef unsigned ze_result_t;
typedef void *ze_handle_t;
typedef struct {
    unsigned stype;
    void *pNext;
    unsigned type;
    uint64_t id, pageSize;
} ze_memory_allocation_properties_t;
typedef struct {
    unsigned stype;
    const void *pNext;
    unsigned ordinal, index, flags, mode, priority;
} ze_command_queue_desc_t;
typedef struct {
    unsigned stype;
    const void *pNext;
    unsigned flags;
} ze_desc_t;

enum { UNINITIALIZED = 0x78000001, INVALID_ARGUMENT = 0x78000004 };

static int is_initialised, the_driver, the_device, the_list;
static char contexts[64];
static int context_count = 1; // the first one is the program's

ze_result_t zeInit(unsigned flags)
{
    (void)flags;
    is_initialised = 1;
    return 0;
}

ze_result_t zeDriverGet(uint32_t *count, ze_handle_t *drivers)
{
    if (!is_initialised)
        return UNINITIALIZED;
    if (*count > 0 && drivers != NULL)
        drivers[0] = &the_driver;
    *count = 1;
    return 0;
}

ze_result_t zeDeviceGet(ze_handle_t driver, uint32_t *count, ze_handle_t *devices)
{
    if (driver != &the_driver)
        return INVALID_ARGUMENT;
    if (*count > 0 && devices != NULL)
        devices[0] = &the_device;
    *count = 1;
    return 0;
}

ze_result_t zeContextCreate(ze_handle_t driver, const ze_desc_t *wanted, ze_handle_t *context)
{
    if (driver != &the_driver || wanted->stype != 0xd || context_count == 64)
        return INVALID_ARGUMENT;
    *context = &contexts[context_count++];
    return 0;
}

ze_result_t zeContextDestroy(ze_handle_t context)
{
    return context == NULL ? INVALID_ARGUMENT : 0;
}

ze_result_t zeMemGetAllocProperties(ze_handle_t context, const void *address,
                                    ze_memory_allocation_properties_t *found, ze_handle_t *device)
{
    static const unsigned types[] = { [DEVICE] = 2, [MANAGED] = 3, [PINNED] = 1 };
    struct memory *memory = find(address);
    if (found->stype != 0x17 || found->pNext != NULL)
        return INVALID_ARGUMENT;
    found->type = 0;
    if (memory != NULL && (memory->context == context || getenv("CHECK_ZE_STRICT") == NULL))
        found->type = types[memory->kind];
    if (device != NULL)
        *device = found->type == 2 ? &the_device : NULL;
    return 0;
}

ze_result_t zeCommandListCreateImmediate(ze_handle_t context, ze_handle_t device,
                                         const ze_command_queue_desc_t *wanted, ze_handle_t *list)
{
    if (context == NULL || device != &the_device || wanted->stype != 0xe || wanted->mode != 1)
        return INVALID_ARGUMENT;
    *list = &the_list;
    return 0;
}

ze_result_t zeCommandListAppendMemoryCopy(ze_handle_t list, void *to, const void *from,
                                          size_t bytes, ze_handle_t event, uint32_t waits,
                                          ze_handle_t *events)
{
    if (list != &the_list || event != NULL || waits != 0 || events != NULL)
        return INVALID_ARGUMENT;
    if (copy(to, from, bytes) != 0)
        return INVALID_ARGUMENT;
    arrive(); // a synchronous list
    return 0;
}

ze_result_t zeMemAllocHost(ze_handle_t context, const ze_desc_t *wanted, size_t bytes,
                           size_t alignment, void **address)
{
    (void)alignment;
    if (wanted->stype != 0x16)
        return INVALID_ARGUMENT;
    *address = allocate(PINNED, bytes, context);
    return 0;
}

ze_result_t zeMemFree(ze_handle_t context, void *address)
{
    return context == NULL || unpin(address) != 0 ? INVALID_ARGUMENT : 0;
}

void *gpu_test_allocate(int kind, size_t bytes)
{
    zeInit(0);
    return allocate(kind, bytes, &contexts[0]);
}
