/* Notified operations (issue 59 of the MPI Forum): a put that adds 1 to a counter of its target, behind
 * the data, and a wait for a counter. No MPI has them yet; libfompi has them under names of its own. The
 * names are weak here, so that a program runs without libfompi, too, and leaves the variant out. */
#ifndef NOTIFY_H
#define NOTIFY_H

#include "../include/fompi_notify.h"
#include "example.h"

#pragma weak FOMPI_Put_notify
#pragma weak FOMPI_Win_set_num_notify
#pragma weak FOMPI_Win_get_notify_value
#pragma weak FOMPI_Win_reset_notify_value
#pragma weak FOMPI_Win_wait_notify
#pragma weak FOMPI_Win_wait_any_notify

/* Whether this process has them. */
static inline int has_notify(void) { return FOMPI_Put_notify != NULL; }

/* As option_has_variant, for a variant that needs notified operations. Where there are none, `all` goes
 * without the variant, with a line that says so; its name ends all ranks with status 2. */
static inline int option_has_notified(Option *options, const char *variant) {
    if (!option_has_variant(options, variant)) return 0;
    if (has_notify()) return 1;
    int rank, is_one_of_all = strcmp(option_text(options, "variant"), "all") == 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) fprintf(stderr, "variant %s is left out: it needs libfompi\n", variant);
    if (is_one_of_all) return 0;
    MPI_Finalize();
    exit(2);
}

#endif
