// A profiling library in front that wraps every one-sided function sees each call of the program
// once, under the name that the program used, and no call that the library below makes for itself.
// Each function is called here; the list is the tool's. MPI-4.1 section 15.2.
// ranks: 1 2 4
// between nodes: shared windows are left to the host MPI
// profiler: every

#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>

// From profiler/every.c, which is preloaded before the library under test.
__attribute__((weak)) const char *profiler_function(int index, int *calls);
__attribute__((weak)) int profiler_others(void);

enum { NAMES = 128, COUNT = 8 };

static struct { const char *name; int calls; } expected[NAMES];

static void expect(const char *name)
{
    int i = 0;
    while (expected[i].name != NULL && strcmp(expected[i].name, name) != 0)
        i++;
    CHECK(i + 1 < NAMES);
    expected[i].name = name;
    expected[i].calls++;
}

static int expected_of(const char *name)
{
    for (int i = 0; expected[i].name != NULL; i++)
        if (strcmp(expected[i].name, name) == 0)
            return expected[i].calls;
    return 0;
}

#define CALL(name, ...) do { \
    expect(#name); \
    OK(MPI_##name(__VA_ARGS__)); \
} while (0)

static int deleted;

static int delete(MPI_Win win, int keyval, void *value, void *extra)
{
    (void)win;
    (void)keyval;
    (void)value;
    deleted += *(int *)extra;
    return MPI_SUCCESS;
}

static int handled;

static void handle(MPI_Win *win, int *code, ...)
{
    (void)win;
    (void)code;
    handled++;
}

static void describe(MPI_Win win)
{
    static int one = 1;
    int keyval, flag, length, *value;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Group group;
    MPI_Info info;
    MPI_Errhandler handler, got;
    CALL(Win_create_keyval, MPI_WIN_NULL_COPY_FN, delete, &keyval, &one);
    CALL(Win_set_attr, win, keyval, &one);
    CALL(Win_get_attr, win, keyval, &value, &flag);
    CHECK(flag && value == &one);
    CALL(Win_delete_attr, win, keyval);
    CHECK_EQ(deleted, 1);
    CALL(Win_free_keyval, &keyval);
    CALL(Win_set_name, win, "seen");
    CALL(Win_get_name, win, name, &length);
    CHECK(strcmp(name, "seen") == 0);
    CALL(Win_get_group, win, &group);
    OK(MPI_Group_free(&group));
    CALL(Win_get_info, win, &info);
    CALL(Win_set_info, win, info);
    OK(MPI_Info_free(&info));
    CALL(Win_create_errhandler, handle, &handler);
    CALL(Win_set_errhandler, win, handler);
    CALL(Win_get_errhandler, win, &got);
    CALL(Win_call_errhandler, win, MPI_ERR_OTHER);
    CHECK_EQ(handled, 1);
    CALL(Errhandler_free, &handler);
    CALL(Errhandler_free, &got);
    char text[MPI_MAX_ERROR_STRING];
    CALL(Error_string, MPI_ERR_WIN, text, &length);
}

static void active(MPI_Win win)
{
    MPI_Group group;
    int done = 0;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    CALL(Win_fence, MPI_MODE_NOPRECEDE, win);
    CALL(Win_fence, MPI_MODE_NOSUCCEED, win);
    CALL(Win_post, group, 0, win);
    CALL(Win_start, group, 0, win);
    CALL(Win_complete, win);
    CALL(Win_wait, win);
    CALL(Win_post, group, 0, win);
    CALL(Win_start, group, 0, win);
    CALL(Win_complete, win);
    while (!done)
        CALL(Win_test, win, &done);
    OK(MPI_Group_free(&group));
}

static void finish(int target, MPI_Win win, MPI_Request request)
{
    int done;
    CALL(Request_get_status, request, &done, MPI_STATUS_IGNORE);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CALL(Win_flush, target, win);
}

static void transfers(MPI_Win win)
{
    const int target = next_rank();
    long a[COUNT] = {1, 2, 3}, b[COUNT], c = 1;
    MPI_Request r;
    CALL(Win_lock, MPI_LOCK_EXCLUSIVE, target, 0, win);
    CALL(Put, a, COUNT, MPI_LONG, target, 0, COUNT, MPI_LONG, win);
    CALL(Win_flush, target, win);
    CALL(Get, b, COUNT, MPI_LONG, target, 0, COUNT, MPI_LONG, win);
    CALL(Win_flush_local, target, win);
    CHECK(memcmp(a, b, sizeof a) == 0);
    CALL(Accumulate, a, COUNT, MPI_LONG, target, 0, COUNT, MPI_LONG, MPI_SUM, win);
    CALL(Get_accumulate, a, COUNT, MPI_LONG, b, COUNT, MPI_LONG, target, 0, COUNT, MPI_LONG,
         MPI_SUM, win);
    CALL(Win_flush, target, win);
    CHECK_EQ(b[2], 6);
    CALL(Fetch_and_op, &c, b, MPI_LONG, target, 2, MPI_SUM, win);
    CALL(Win_flush, target, win);
    CHECK_EQ(b[0], 9);
    CALL(Compare_and_swap, &c, b, b + 1, MPI_LONG, target, 2, win);
    CALL(Rput, a, COUNT, MPI_LONG, target, 0, COUNT, MPI_LONG, win, &r);
    finish(target, win, r);
    CALL(Rget, b, COUNT, MPI_LONG, target, 0, COUNT, MPI_LONG, win, &r);
    finish(target, win, r);
    CALL(Raccumulate, a, COUNT, MPI_LONG, target, 0, COUNT, MPI_LONG, MPI_SUM, win, &r);
    finish(target, win, r);
    CALL(Rget_accumulate, a, COUNT, MPI_LONG, b, COUNT, MPI_LONG, target, 0, COUNT, MPI_LONG,
         MPI_SUM, win, &r);
    finish(target, win, r);
    CHECK_EQ(b[2], 6);
    CALL(Win_unlock, target, win);
}

static void large_counts(MPI_Win win)
{
#if MPI_VERSION >= 4
    const int target = next_rank();
    const MPI_Count count = COUNT;
    long a[COUNT] = {1, 2, 3}, b[COUNT];
    MPI_Request r;
    CALL(Win_lock, MPI_LOCK_EXCLUSIVE, target, 0, win);
    CALL(Put_c, a, count, MPI_LONG, target, 0, count, MPI_LONG, win);
    CALL(Win_flush, target, win);
    CALL(Get_c, b, count, MPI_LONG, target, 0, count, MPI_LONG, win);
    CALL(Accumulate_c, a, count, MPI_LONG, target, 0, count, MPI_LONG, MPI_SUM, win);
    CALL(Get_accumulate_c, a, count, MPI_LONG, b, count, MPI_LONG, target, 0, count, MPI_LONG,
         MPI_SUM, win);
    CALL(Rput_c, a, count, MPI_LONG, target, 0, count, MPI_LONG, win, &r);
    finish(target, win, r);
    CALL(Rget_c, b, count, MPI_LONG, target, 0, count, MPI_LONG, win, &r);
    finish(target, win, r);
    CALL(Raccumulate_c, a, count, MPI_LONG, target, 0, count, MPI_LONG, MPI_SUM, win, &r);
    finish(target, win, r);
    CALL(Rget_accumulate_c, a, count, MPI_LONG, b, count, MPI_LONG, target, 0, count, MPI_LONG,
         MPI_SUM, win, &r);
    finish(target, win, r);
    CHECK_EQ(b[2], 6);
    CALL(Win_unlock, target, win);
#else
    (void)win;
#endif
}

static void all_targets(MPI_Win win)
{
    CALL(Win_lock_all, 0, win);
    CALL(Win_flush_all, win);
    CALL(Win_flush_local_all, win);
    CALL(Win_sync, win);
    CALL(Win_unlock_all, win);
}

static void windows(void)
{
    const MPI_Aint bytes = COUNT * sizeof(long);
    MPI_Aint size;
    MPI_Win win;
    int unit;
    void *memory, *base;
    CALL(Alloc_mem, bytes, MPI_INFO_NULL, &memory);
    CALL(Win_create, memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    large_counts(win);
    CALL(Win_free, &win);
    CALL(Win_create_dynamic, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    CALL(Win_attach, win, memory, bytes);
    CALL(Win_detach, win, memory);
    CALL(Win_free, &win);
    CALL(Win_allocate_shared, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    CALL(Win_shared_query, win, rank, &size, &unit, &base);
    CHECK_EQ(unit, sizeof(long));
    CALL(Win_free, &win);
#if MPI_VERSION >= 4
    MPI_Aint large_unit;
    CALL(Win_create_c, memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    CALL(Win_free, &win);
    CALL(Win_allocate_c, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    CALL(Win_free, &win);
    CALL(Win_allocate_shared_c, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    CALL(Win_shared_query_c, win, rank, &size, &large_unit, &base);
    CHECK_EQ(large_unit, sizeof(long));
    CALL(Win_free, &win);
#endif
    CALL(Free_mem, memory);
}

// The tool's function, if the MPI has got its twin: some are macros in some mpi.h, some are new.
static void *of_tool(const char *name)
{
    char twin[64];
    snprintf(twin, sizeof twin, "P%s", name);
    if (dlsym(RTLD_DEFAULT, twin) == NULL)
        return NULL;
    expect(name + strlen("MPI_"));
    return dlsym(RTLD_DEFAULT, name);
}

static void integers(MPI_Win win)
{
    MPI_Fint (*c2f)(MPI_Win) = of_tool("MPI_Win_c2f");
    MPI_Win (*f2c)(MPI_Fint) = of_tool("MPI_Win_f2c");
    MPI_Aint (*add)(MPI_Aint, MPI_Aint) = of_tool("MPI_Aint_add");
    MPI_Aint (*diff)(MPI_Aint, MPI_Aint) = of_tool("MPI_Aint_diff");
    int (*toint)(MPI_Win) = of_tool("MPI_Win_toint");
    MPI_Win (*fromint)(int) = of_tool("MPI_Win_fromint");
    CHECK((c2f == NULL) == (f2c == NULL) && (add == NULL) == (diff == NULL));
    CHECK((toint == NULL) == (fromint == NULL));
    if (c2f != NULL)
        CHECK(f2c(c2f(win)) == win);
    if (add != NULL)
        CHECK_EQ(diff(add(1000, 24), 1000), 24);
    if (toint != NULL)
        CHECK(fromint(toint(win)) == win);
}

int main(int argc, char **argv)
{
    MPI_Win win;
    void *base;
    check_start(&argc, &argv);
    CHECK(profiler_function != NULL && profiler_others != NULL);
    windows();
    CALL(Win_allocate, COUNT * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base,
         &win);
    describe(win);
    active(win);
    transfers(win);
    all_targets(win);
    integers(win);
    CALL(Win_free, &win);
    // MPI_Comm_rank and MPI_Comm_size at the start, MPI_Comm_group in `active`.
    CHECK_EQ(profiler_others(), 3);
    int calls;
    const char *name;
    for (int i = 0; (name = profiler_function(i, &calls)) != NULL; i++) {
        if (calls != expected_of(name))
            check_failed(__FILE__, __LINE__, "MPI_%s was seen %d times, not %d", name, calls,
                         expected_of(name));
        char twin[64];
        snprintf(twin, sizeof twin, "PMPI_%s", name);
        const int large = MPI_VERSION < 4 && strcmp(name + strlen(name) - 2, "_c") == 0;
        if (calls == 0 && !large && dlsym(RTLD_DEFAULT, twin) != NULL)
            check_failed(__FILE__, __LINE__, "MPI_%s was never called", name);
    }
    return check_end();
}
