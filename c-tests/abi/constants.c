/* Proves the tables of crates/host/src/constants against the mpi.h that this is compiled with: integers at
 * compile time, handles when it runs, sizes and extents of datatypes by asking MPI.
 * Prints how much was proved, and each difference. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(MPI_ABI)
#define ROWS "generated/standard.h"
#define FAMILY "MPI-5"
#elif defined(MPICH_VERSION) || defined(I_MPI_VERSION)
#define ROWS "generated/mpich.h"
#define FAMILY "MPICH"
#elif defined(OMPI_MAJOR_VERSION)
#define ROWS "generated/openmpi.h"
#define FAMILY "Open MPI"
/* Removed from MPI-3.0: Open MPI keeps their numbers under other names. */
#if (OMPI_OMIT_MPI1_COMPAT_DECLS + 0) || !(OMPI_ENABLE_MPI1_COMPAT + 0)
#undef MPI_COMBINER_HVECTOR_INTEGER
#undef MPI_COMBINER_HINDEXED_INTEGER
#undef MPI_COMBINER_STRUCT_INTEGER
#define MPI_COMBINER_HVECTOR_INTEGER OMPI_WAS_MPI_COMBINER_HVECTOR_INTEGER
#define MPI_COMBINER_HINDEXED_INTEGER OMPI_WAS_MPI_COMBINER_HINDEXED_INTEGER
#define MPI_COMBINER_STRUCT_INTEGER OMPI_WAS_MPI_COMBINER_STRUCT_INTEGER
#endif
#else
#define ROWS "generated/standard.h"
#define FAMILY "MPI-5"
#endif

/* At compile time. */
#define INTEGER(name, value) _Static_assert((long)(name) == (value), #name);
#define HANDLE(name, value)
#define HANDLE_OR_INTEL(name, value, intel)
#define DATATYPE(name, handle, size, extent)
#include ROWS
#undef INTEGER
#undef HANDLE
#undef HANDLE_OR_INTEL
#undef DATATYPE

static int integers, handles, datatypes, absent, wrong;

static void compare(const char *name, uintptr_t header, uintptr_t table)
{
    if (header != table) {
        printf("%s is %#lx in mpi.h, %#lx in the table\n", name, (long)header, (long)table);
        wrong++;
    }
}

static void compare_datatype(const char *name, MPI_Datatype type, int size, MPI_Aint extent)
{
    int has_size = 0;
    MPI_Aint lower, has_extent = 0;
    if (type == MPI_DATATYPE_NULL || MPI_Type_size(type, &has_size) != MPI_SUCCESS
        || has_size <= 0 || MPI_Type_get_extent(type, &lower, &has_extent) != MPI_SUCCESS) {
        absent++;
        return;
    }
    datatypes++;
    if (has_size != size || has_extent != extent) {
        printf("%s has size %d and extent %ld, in the table %d and %ld\n", name, has_size,
               (long)has_extent, size, (long)extent);
        wrong++;
    }
}

#define VALUE(name) (sizeof(name) == 4 ? (uint32_t)(uintptr_t)(name) : (uintptr_t)(name))
#if defined(OMPI_MAJOR_VERSION) && !defined(MPI_ABI)
#define TABLE(value) ((uintptr_t)dlsym(RTLD_DEFAULT, #value))
#else
#define TABLE(value) ((uintptr_t)(value))
#endif

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Get_library_version(version, &length);
    int intel = strstr(version, "Intel") != NULL;
    (void)intel;

#define INTEGER(name, value) integers++;
#define HANDLE(name, value) handles++, compare(#name, VALUE(name), TABLE(value));
#define HANDLE_OR_INTEL(name, value, other) \
    handles++, compare(#name, VALUE(name), TABLE(intel ? other : value));
#define DATATYPE(name, handle, size, extent) \
    if (name != MPI_DATATYPE_NULL) \
        compare(#name, VALUE(name), TABLE(handle)); \
    compare_datatype(#name, name, size, extent);
#include ROWS

    version[strcspn(version, "\n,")] = '\0';
    printf("%s ABI, %s: %d numbers, %d handles, %d datatypes (%d absent), %d wrong\n", FAMILY,
           version, integers, handles, datatypes, absent, wrong);
    MPI_Finalize();
    return wrong != 0;
}
