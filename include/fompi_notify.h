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

int FOMPI_Win_set_num_notify(MPI_Win win, MPI_Info info, int number_of_counters);

int FOMPI_Win_get_num_notify(MPI_Win win, int rank, int *number_of_counters);

int FOMPI_Win_get_notify_value(MPI_Win win, int index, MPI_Count *value);

int FOMPI_Win_reset_notify_value(MPI_Win win, int index, MPI_Count *value);

int FOMPI_Win_wait_notify(MPI_Win win, int index, MPI_Count threshold);

int FOMPI_Win_wait_any_notify(MPI_Win win,
                              int first,
                              int number_of_counters,
                              MPI_Count threshold,
                              int *index);

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

int FOMPI_Put_notify(const void *origin,
                     int origin_count,
                     MPI_Datatype origin_type,
                     int rank,
                     MPI_Aint disp,
                     int target_count,
                     MPI_Datatype target_type,
                     int index,
                     MPI_Win win);

int FOMPI_Put_notify_c(const void *origin,
                       MPI_Count origin_count,
                       MPI_Datatype origin_type,
                       int rank,
                       MPI_Aint disp,
                       MPI_Count target_count,
                       MPI_Datatype target_type,
                       int index,
                       MPI_Win win);

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

int FOMPI_Get_notify(void *origin,
                     int origin_count,
                     MPI_Datatype origin_type,
                     int rank,
                     MPI_Aint disp,
                     int target_count,
                     MPI_Datatype target_type,
                     int index,
                     MPI_Win win);

int FOMPI_Get_notify_c(void *origin,
                       MPI_Count origin_count,
                       MPI_Datatype origin_type,
                       int rank,
                       MPI_Aint disp,
                       MPI_Count target_count,
                       MPI_Datatype target_type,
                       int index,
                       MPI_Win win);

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

int FOMPI_Rfetch_and_op(const void *origin,
                        void *result,
                        MPI_Datatype datatype,
                        int rank,
                        MPI_Aint disp,
                        MPI_Op op,
                        MPI_Win win,
                        MPI_Request *request);

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
