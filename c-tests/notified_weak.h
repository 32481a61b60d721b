// Notified operations as weak symbols: NULL where only the plain MPI is there.

#ifndef NOTIFIED_WEAK_H
#define NOTIFIED_WEAK_H

#include <mpi.h>

#include "../include/fompi_notify.h"

#pragma weak FOMPI_Put_notify
#pragma weak FOMPI_Put_notify_c
#pragma weak FOMPI_Rput_notify
#pragma weak FOMPI_Rput_notify_c
#pragma weak FOMPI_Get_notify
#pragma weak FOMPI_Get_notify_c
#pragma weak FOMPI_Rget_notify
#pragma weak FOMPI_Rget_notify_c
#pragma weak FOMPI_Accumulate_notify
#pragma weak FOMPI_Accumulate_notify_c
#pragma weak FOMPI_Raccumulate_notify
#pragma weak FOMPI_Raccumulate_notify_c
#pragma weak FOMPI_Get_accumulate_notify
#pragma weak FOMPI_Get_accumulate_notify_c
#pragma weak FOMPI_Rget_accumulate_notify
#pragma weak FOMPI_Rget_accumulate_notify_c
#pragma weak FOMPI_Rfetch_and_op
#pragma weak FOMPI_Rcompare_and_swap
#pragma weak FOMPI_Win_set_num_notify
#pragma weak FOMPI_Win_get_num_notify
#pragma weak FOMPI_Win_get_notify_value
#pragma weak FOMPI_Win_reset_notify_value
#pragma weak FOMPI_Win_wait_notify
#pragma weak FOMPI_Win_wait_any_notify
#pragma weak FOMPI_Win_notify_request
#pragma weak fompi_err_rma_notification
#pragma weak fompi_win_notification_num_sb
#pragma weak fompi_win_notification_num_ub
#pragma weak fompi_win_notification_value_ub

#endif
