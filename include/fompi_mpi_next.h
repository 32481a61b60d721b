/* libfompi: notified operations under the names of the MPI Forum's proposal (issue 59), which no MPI has yet.
 * Include it after mpi.h: the calls become libfompi's own at compile time. An mpi.h of a version that has
 * the names keeps them. The proposal may change until it is adopted; this is its state of October 2026. */

#ifndef FOMPI_MPI_NEXT_H
#define FOMPI_MPI_NEXT_H

#include <mpi.h>

#if MPI_VERSION < 5 || (MPI_VERSION == 5 && MPI_SUBVERSION < 1)

#include "fompi_notify.h"

#define MPI_Put_notify FOMPI_Put_notify
#define PMPI_Put_notify FOMPI_Put_notify
#define MPI_Put_notify_c FOMPI_Put_notify_c
#define PMPI_Put_notify_c FOMPI_Put_notify_c
#define MPI_Rput_notify FOMPI_Rput_notify
#define PMPI_Rput_notify FOMPI_Rput_notify
#define MPI_Rput_notify_c FOMPI_Rput_notify_c
#define PMPI_Rput_notify_c FOMPI_Rput_notify_c
#define MPI_Get_notify FOMPI_Get_notify
#define PMPI_Get_notify FOMPI_Get_notify
#define MPI_Get_notify_c FOMPI_Get_notify_c
#define PMPI_Get_notify_c FOMPI_Get_notify_c
#define MPI_Rget_notify FOMPI_Rget_notify
#define PMPI_Rget_notify FOMPI_Rget_notify
#define MPI_Rget_notify_c FOMPI_Rget_notify_c
#define PMPI_Rget_notify_c FOMPI_Rget_notify_c
#define MPI_Accumulate_notify FOMPI_Accumulate_notify
#define PMPI_Accumulate_notify FOMPI_Accumulate_notify
#define MPI_Accumulate_notify_c FOMPI_Accumulate_notify_c
#define PMPI_Accumulate_notify_c FOMPI_Accumulate_notify_c
#define MPI_Raccumulate_notify FOMPI_Raccumulate_notify
#define PMPI_Raccumulate_notify FOMPI_Raccumulate_notify
#define MPI_Raccumulate_notify_c FOMPI_Raccumulate_notify_c
#define PMPI_Raccumulate_notify_c FOMPI_Raccumulate_notify_c
#define MPI_Get_accumulate_notify FOMPI_Get_accumulate_notify
#define PMPI_Get_accumulate_notify FOMPI_Get_accumulate_notify
#define MPI_Get_accumulate_notify_c FOMPI_Get_accumulate_notify_c
#define PMPI_Get_accumulate_notify_c FOMPI_Get_accumulate_notify_c
#define MPI_Rget_accumulate_notify FOMPI_Rget_accumulate_notify
#define PMPI_Rget_accumulate_notify FOMPI_Rget_accumulate_notify
#define MPI_Rget_accumulate_notify_c FOMPI_Rget_accumulate_notify_c
#define PMPI_Rget_accumulate_notify_c FOMPI_Rget_accumulate_notify_c
#define MPI_Win_set_num_notify FOMPI_Win_set_num_notify
#define PMPI_Win_set_num_notify FOMPI_Win_set_num_notify
#define MPI_Win_get_num_notify FOMPI_Win_get_num_notify
#define PMPI_Win_get_num_notify FOMPI_Win_get_num_notify
#define MPI_Win_get_notify_value FOMPI_Win_get_notify_value
#define PMPI_Win_get_notify_value FOMPI_Win_get_notify_value
#define MPI_Win_reset_notify_value FOMPI_Win_reset_notify_value
#define PMPI_Win_reset_notify_value FOMPI_Win_reset_notify_value

/* Window attributes, and the error class of an index that a process does not have. */
#define MPI_WIN_NOTIFICATION_NUM_SB FOMPI_WIN_NOTIFICATION_NUM_SB
#define MPI_WIN_NOTIFICATION_NUM_UB FOMPI_WIN_NOTIFICATION_NUM_UB
#define MPI_WIN_NOTIFICATION_VALUE_UB FOMPI_WIN_NOTIFICATION_VALUE_UB
#define MPI_ERR_RMA_NOTIFICATION FOMPI_ERR_RMA_NOTIFICATION

#endif

#endif /* FOMPI_MPI_NEXT_H */
