// A program that looks functions up finds those of sessions all, or none where the MPI has none.
// MPI-4.1 section 11.3.1.
// ranks: 1

#include "check.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    CHECK((dlsym(RTLD_DEFAULT, "MPI_Session_init") == NULL) ==
          (dlsym(RTLD_DEFAULT, "MPI_Session_finalize") == NULL));
    CHECK((dlsym(RTLD_DEFAULT, "PMPI_Session_init") == NULL) ==
          (dlsym(RTLD_DEFAULT, "PMPI_Session_finalize") == NULL));
    return check_end();
}
