/* libfompi: notified operations (issue 59 of the MPI Forum), and requests for MPI_Fetch_and_op and
 * MPI_Compare_and_swap (issue 128). Written by scripts/dev/headers. */

#ifndef FOMPI_NOTIFY_H
#define FOMPI_NOTIFY_H

#include <mpi.h>

/* Keyvals of window attributes, for MPI_Win_get_attr: the number of counters that are served well and the
 * most, each an int, and the largest value of a counter, an MPI_Count. */
#define FOMPI_WIN_NOTIFICATION_NUM_SB fompi_win_notification_num_sb()
#define FOMPI_WIN_NOTIFICATION_NUM_UB fompi_win_notification_num_ub()
#define FOMPI_WIN_NOTIFICATION_VALUE_UB fompi_win_notification_value_ub()
/* The error class of an index that a process does not have. */
#define FOMPI_ERR_RMA_NOTIFICATION fompi_err_rma_notification()

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

/* Gives this process counters for notified operations, all 0, in place of those that it has.
 * Collective and synchronizing over the group of the window; each process gives a number of
 * its own. No access epoch of this process is open. Indices are 0 to `number` minus 1. Errors:
 * MPI_ERR_WIN, MPI_ERR_ARG for a number below 0 or above mpi_assert_max_num_notify,
 * MPI_ERR_RMA_SYNC, MPI_ERR_NO_MEM, MPI_ERR_UNSUPPORTED_OPERATION on a window of the host MPI.
 * An error of one process is an error of all, and the counters stay. */
int FOMPI_Win_set_num_notify(MPI_Win win, MPI_Info info, int number_of_counters);

/* Returns the number of counters of a process of the window. Local, but for the first call of
 * a process of another node. Errors: MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_ARG for a null
 * pointer. */
int FOMPI_Win_get_num_notify(MPI_Win win, int rank, int *number_of_counters);

/* Returns the value of a counter of this process: the notifications since its last reset. What
 * the counted operations have stored is visible to this process, as after MPI_Win_sync.
 * Errors: MPI_ERR_WIN, FOMPI_ERR_RMA_NOTIFICATION, MPI_ERR_ARG for a null pointer. */
int FOMPI_Win_get_notify_value(MPI_Win win, int index, MPI_Count *value);

/* Sets a counter of this process to 0 and returns its value before; no notification is lost.
 * Errors: those of FOMPI_Win_get_notify_value. */
int FOMPI_Win_reset_notify_value(MPI_Win win, int index, MPI_Count *value);

/* Waits until a counter of this process has reached a threshold. The thread spins for up to
 * about a millisecond where it has a core, then sleeps until a notification comes. Errors:
 * those of FOMPI_Win_get_notify_value, MPI_ERR_OTHER if a process of the window is lost. */
int FOMPI_Win_wait_notify(MPI_Win win, int index, MPI_Count threshold);

/* Waits until one of the counters `first` to `first` plus `number` minus 1 of this process has
 * reached a threshold, and returns its index: the lowest one, if there are several. Errors:
 * those of FOMPI_Win_wait_notify, MPI_ERR_ARG for a number below 1. */
int FOMPI_Win_wait_any_notify(MPI_Win win,
                              int first,
                              int number_of_counters,
                              MPI_Count threshold,
                              int *index);

/* Returns a request that is complete once a counter of this process has reached a threshold.
 * Errors: those of FOMPI_Win_wait_notify. */
int FOMPI_Win_notify_request(MPI_Win win, int index, MPI_Count threshold, MPI_Request *request);

/* Returns the error class FOMPI_ERR_RMA_NOTIFICATION: an index of a counter that a process does
 * not have. MPI_Init has been called. Not an MPI function; raises no error. */
int fompi_err_rma_notification(void);

/* Returns the keyval of the window attribute FOMPI_WIN_NOTIFICATION_NUM_SB: the number of counters
 * that are served well, an int. MPI_Init has been called. Not an MPI function; raises no error. */
int fompi_win_notification_num_sb(void);

/* Returns the keyval of the window attribute FOMPI_WIN_NOTIFICATION_NUM_UB: the most counters of a
 * process, an int. MPI_Init has been called. Not an MPI function; raises no error. */
int fompi_win_notification_num_ub(void);

/* Returns the keyval of the window attribute FOMPI_WIN_NOTIFICATION_VALUE_UB: the largest value of
 * a counter, an MPI_Count. MPI_Init has been called. Not an MPI function; raises no error. */
int fompi_win_notification_value_ub(void);

/* Transfers data to a target, as MPI_Put, and adds 1 to a counter of the target behind them: a
 * target that reads the new value may read the data. Only for passive target epochs. Complete
 * at the target, notification included, after a flush. Errors: those of MPI_Put,
 * FOMPI_ERR_RMA_NOTIFICATION for an index that the target does not have, MPI_ERR_RMA_SYNC
 * outside of a passive target epoch. */
int FOMPI_Put_notify(const void *origin,
                     int origin_count,
                     MPI_Datatype origin_type,
                     int rank,
                     MPI_Aint disp,
                     int target_count,
                     MPI_Datatype target_type,
                     int index,
                     MPI_Win win);

/* Transfers data to a target, as FOMPI_Put_notify, with large counts. Errors: those of
 * FOMPI_Put_notify. */
int FOMPI_Put_notify_c(const void *origin,
                       MPI_Count origin_count,
                       MPI_Datatype origin_type,
                       int rank,
                       MPI_Aint disp,
                       MPI_Count target_count,
                       MPI_Datatype target_type,
                       int index,
                       MPI_Win win);

/* Transfers data to a target, as FOMPI_Put_notify, with a request, which is complete when the
 * buffer may be reused: the notification may come later. Errors: those of FOMPI_Put_notify. */
int FOMPI_Rput_notify(const void *origin,
                      int origin_count,
                      MPI_Datatype origin_type,
                      int rank,
                      MPI_Aint disp,
                      int target_count,
                      MPI_Datatype target_type,
                      int index,
                      MPI_Win win,
                      MPI_Request *request);

/* Transfers data to a target, as FOMPI_Rput_notify, with large counts. Errors: those of
 * FOMPI_Put_notify. */
int FOMPI_Rput_notify_c(const void *origin,
                        MPI_Count origin_count,
                        MPI_Datatype origin_type,
                        int rank,
                        MPI_Aint disp,
                        MPI_Count target_count,
                        MPI_Datatype target_type,
                        int index,
                        MPI_Win win,
                        MPI_Request *request);

/* Transfers data from a target, as MPI_Get, and adds 1 to a counter of the target behind the
 * reads: a target that reads the new value may change the data. Only for passive target
 * epochs. Errors: those of FOMPI_Put_notify. */
int FOMPI_Get_notify(void *origin,
                     int origin_count,
                     MPI_Datatype origin_type,
                     int rank,
                     MPI_Aint disp,
                     int target_count,
                     MPI_Datatype target_type,
                     int index,
                     MPI_Win win);

/* Transfers data from a target, as FOMPI_Get_notify, with large counts. Errors: those of
 * FOMPI_Put_notify. */
int FOMPI_Get_notify_c(void *origin,
                       MPI_Count origin_count,
                       MPI_Datatype origin_type,
                       int rank,
                       MPI_Aint disp,
                       MPI_Count target_count,
                       MPI_Datatype target_type,
                       int index,
                       MPI_Win win);

/* Transfers data from a target, as FOMPI_Get_notify, with a request, which is complete when
 * the data have arrived. Errors: those of FOMPI_Put_notify. */
int FOMPI_Rget_notify(void *origin,
                      int origin_count,
                      MPI_Datatype origin_type,
                      int rank,
                      MPI_Aint disp,
                      int target_count,
                      MPI_Datatype target_type,
                      int index,
                      MPI_Win win,
                      MPI_Request *request);

/* Transfers data from a target, as FOMPI_Rget_notify, with large counts. Errors: those of
 * FOMPI_Put_notify. */
int FOMPI_Rget_notify_c(void *origin,
                        MPI_Count origin_count,
                        MPI_Datatype origin_type,
                        int rank,
                        MPI_Aint disp,
                        MPI_Count target_count,
                        MPI_Datatype target_type,
                        int index,
                        MPI_Win win,
                        MPI_Request *request);

/* Combines origin data with target data, as MPI_Accumulate, and adds 1 to a counter of the
 * target behind that. Only for passive target epochs. Errors: those of MPI_Accumulate and
 * FOMPI_Put_notify. */
int FOMPI_Accumulate_notify(const void *origin,
                            int origin_count,
                            MPI_Datatype origin_type,
                            int rank,
                            MPI_Aint disp,
                            int target_count,
                            MPI_Datatype target_type,
                            MPI_Op op,
                            int index,
                            MPI_Win win);

/* Combines origin data with target data, as FOMPI_Accumulate_notify, with large counts.
 * Errors: those of FOMPI_Accumulate_notify. */
int FOMPI_Accumulate_notify_c(const void *origin,
                              MPI_Count origin_count,
                              MPI_Datatype origin_type,
                              int rank,
                              MPI_Aint disp,
                              MPI_Count target_count,
                              MPI_Datatype target_type,
                              MPI_Op op,
                              int index,
                              MPI_Win win);

/* Combines origin data with target data, as FOMPI_Accumulate_notify, with a request, which is
 * complete when the buffer may be reused. Errors: those of FOMPI_Accumulate_notify. */
int FOMPI_Raccumulate_notify(const void *origin,
                             int origin_count,
                             MPI_Datatype origin_type,
                             int rank,
                             MPI_Aint disp,
                             int target_count,
                             MPI_Datatype target_type,
                             MPI_Op op,
                             int index,
                             MPI_Win win,
                             MPI_Request *request);

/* Combines origin data with target data, as FOMPI_Raccumulate_notify, with large counts.
 * Errors: those of FOMPI_Accumulate_notify. */
int FOMPI_Raccumulate_notify_c(const void *origin,
                               MPI_Count origin_count,
                               MPI_Datatype origin_type,
                               int rank,
                               MPI_Aint disp,
                               MPI_Count target_count,
                               MPI_Datatype target_type,
                               MPI_Op op,
                               int index,
                               MPI_Win win,
                               MPI_Request *request);

/* Returns data of a target and combines them, as MPI_Get_accumulate, and adds 1 to a counter
 * of the target behind that. Only for passive target epochs. Errors: those of
 * MPI_Get_accumulate and FOMPI_Put_notify. */
int FOMPI_Get_accumulate_notify(const void *origin,
                                int origin_count,
                                MPI_Datatype origin_type,
                                void *result,
                                int result_count,
                                MPI_Datatype result_type,
                                int rank,
                                MPI_Aint disp,
                                int target_count,
                                MPI_Datatype target_type,
                                MPI_Op op,
                                int index,
                                MPI_Win win);

/* Returns data of a target and combines them, as FOMPI_Get_accumulate_notify, with large
 * counts. Errors: those of FOMPI_Get_accumulate_notify. */
int FOMPI_Get_accumulate_notify_c(const void *origin,
                                  MPI_Count origin_count,
                                  MPI_Datatype origin_type,
                                  void *result,
                                  MPI_Count result_count,
                                  MPI_Datatype result_type,
                                  int rank,
                                  MPI_Aint disp,
                                  MPI_Count target_count,
                                  MPI_Datatype target_type,
                                  MPI_Op op,
                                  int index,
                                  MPI_Win win);

/* Returns data of a target and combines them, as FOMPI_Get_accumulate_notify, with a request,
 * which is complete when the result has arrived. Errors: those of FOMPI_Get_accumulate_notify. */
int FOMPI_Rget_accumulate_notify(const void *origin,
                                 int origin_count,
                                 MPI_Datatype origin_type,
                                 void *result,
                                 int result_count,
                                 MPI_Datatype result_type,
                                 int rank,
                                 MPI_Aint disp,
                                 int target_count,
                                 MPI_Datatype target_type,
                                 MPI_Op op,
                                 int index,
                                 MPI_Win win,
                                 MPI_Request *request);

/* Returns data of a target and combines them, as FOMPI_Rget_accumulate_notify, with large
 * counts. Errors: those of FOMPI_Get_accumulate_notify. */
int FOMPI_Rget_accumulate_notify_c(const void *origin,
                                   MPI_Count origin_count,
                                   MPI_Datatype origin_type,
                                   void *result,
                                   MPI_Count result_count,
                                   MPI_Datatype result_type,
                                   int rank,
                                   MPI_Aint disp,
                                   MPI_Count target_count,
                                   MPI_Datatype target_type,
                                   MPI_Op op,
                                   int index,
                                   MPI_Win win,
                                   MPI_Request *request);

/* Returns one element of a target and combines it, as MPI_Fetch_and_op, with a request (issue
 * 128 of the MPI Forum), which is complete when the result has arrived. Only for passive
 * target epochs. Errors: those of MPI_Fetch_and_op, MPI_ERR_ARG for a null pointer as the
 * request. */
int FOMPI_Rfetch_and_op(const void *origin,
                        void *result,
                        MPI_Datatype datatype,
                        int rank,
                        MPI_Aint disp,
                        MPI_Op op,
                        MPI_Win win,
                        MPI_Request *request);

/* Returns one element of a target and replaces it if it equals `compare`, as
 * MPI_Compare_and_swap, with a request (issue 128 of the MPI Forum), which is complete when
 * the result has arrived. Only for passive target epochs. Errors: those of
 * MPI_Compare_and_swap, MPI_ERR_ARG for a null pointer as the request. */
int FOMPI_Rcompare_and_swap(const void *origin,
                            const void *compare,
                            void *result,
                            MPI_Datatype datatype,
                            int rank,
                            MPI_Aint disp,
                            MPI_Win win,
                            MPI_Request *request);

#ifdef __cplusplus
} /* extern "C" */
#endif /* __cplusplus */

#endif /* FOMPI_NOTIFY_H */
