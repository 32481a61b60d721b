/* The MPI functions that libfompi.so exports; include it after any mpi.h. Written by scripts/dev/headers.
 * Where mpi.h has a macro instead of a function, the macro stays. */
#ifndef FOMPI_MPI_H
#define FOMPI_MPI_H

#pragma push_macro("MPI_Aint_add")
#undef MPI_Aint_add
#pragma push_macro("PMPI_Aint_add")
#undef PMPI_Aint_add
#pragma push_macro("MPI_Aint_diff")
#undef MPI_Aint_diff
#pragma push_macro("PMPI_Aint_diff")
#undef PMPI_Aint_diff
#pragma push_macro("MPI_Win_c2f")
#undef MPI_Win_c2f
#pragma push_macro("PMPI_Win_c2f")
#undef PMPI_Win_c2f
#pragma push_macro("MPI_Win_f2c")
#undef MPI_Win_f2c
#pragma push_macro("PMPI_Win_f2c")
#undef PMPI_Win_f2c

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

int MPI_Win_set_name(MPI_Win win, const char *name);

int PMPI_Win_set_name(MPI_Win win, const char *name);

int MPI_Win_get_name(MPI_Win win, char *name, int *length);

int PMPI_Win_get_name(MPI_Win win, char *name, int *length);

int MPI_Win_get_group(MPI_Win win, MPI_Group *group);

int PMPI_Win_get_group(MPI_Win win, MPI_Group *group);

int MPI_Win_set_info(MPI_Win win, MPI_Info info);

int PMPI_Win_set_info(MPI_Win win, MPI_Info info);

int MPI_Win_get_info(MPI_Win win, MPI_Info *info);

int PMPI_Win_get_info(MPI_Win win, MPI_Info *info);

int MPI_Win_fence(int assert, MPI_Win win);

int PMPI_Win_fence(int assert, MPI_Win win);

int MPI_Win_post(MPI_Group group, int assert, MPI_Win win);

int PMPI_Win_post(MPI_Group group, int assert, MPI_Win win);

int MPI_Win_start(MPI_Group group, int assert, MPI_Win win);

int PMPI_Win_start(MPI_Group group, int assert, MPI_Win win);

int MPI_Win_complete(MPI_Win win);

int PMPI_Win_complete(MPI_Win win);

int MPI_Win_wait(MPI_Win win);

int PMPI_Win_wait(MPI_Win win);

int MPI_Win_test(MPI_Win win, int *flag);

int PMPI_Win_test(MPI_Win win, int *flag);

int MPI_Win_lock(int lock_type, int rank, int assert, MPI_Win win);

int PMPI_Win_lock(int lock_type, int rank, int assert, MPI_Win win);

int MPI_Win_unlock(int rank, MPI_Win win);

int PMPI_Win_unlock(int rank, MPI_Win win);

int MPI_Win_lock_all(int assert, MPI_Win win);

int PMPI_Win_lock_all(int assert, MPI_Win win);

int MPI_Win_unlock_all(MPI_Win win);

int PMPI_Win_unlock_all(MPI_Win win);

int MPI_Win_flush(int rank, MPI_Win win);

int PMPI_Win_flush(int rank, MPI_Win win);

int MPI_Win_flush_local(int rank, MPI_Win win);

int PMPI_Win_flush_local(int rank, MPI_Win win);

int MPI_Win_flush_all(MPI_Win win);

int PMPI_Win_flush_all(MPI_Win win);

int MPI_Win_flush_local_all(MPI_Win win);

int PMPI_Win_flush_local_all(MPI_Win win);

int MPI_Win_sync(MPI_Win win);

int PMPI_Win_sync(MPI_Win win);

int MPI_Win_create_errhandler(MPI_Win_errhandler_function *function, MPI_Errhandler *errhandler);

int PMPI_Win_create_errhandler(MPI_Win_errhandler_function *function, MPI_Errhandler *errhandler);

int MPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler);

int PMPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler);

int MPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler);

int PMPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler);

int MPI_Win_call_errhandler(MPI_Win win, int error);

int PMPI_Win_call_errhandler(MPI_Win win, int error);

int MPI_Errhandler_free(MPI_Errhandler *errhandler);

int PMPI_Errhandler_free(MPI_Errhandler *errhandler);

int MPI_Win_c2f(MPI_Win win);

int PMPI_Win_c2f(MPI_Win win);

MPI_Win MPI_Win_f2c(int win);

MPI_Win PMPI_Win_f2c(int win);

int MPI_Win_toint(MPI_Win win);

int PMPI_Win_toint(MPI_Win win);

MPI_Win MPI_Win_fromint(int win);

MPI_Win PMPI_Win_fromint(int win);

MPI_Aint MPI_Aint_add(MPI_Aint base, MPI_Aint disp);

MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp);

MPI_Aint MPI_Aint_diff(MPI_Aint one, MPI_Aint other);

MPI_Aint PMPI_Aint_diff(MPI_Aint one, MPI_Aint other);

int MPI_Win_get_attr(MPI_Win win, int keyval, void *value, int *flag);

int PMPI_Win_get_attr(MPI_Win win, int keyval, void *value, int *flag);

int MPI_Win_set_attr(MPI_Win win, int keyval, void *value);

int PMPI_Win_set_attr(MPI_Win win, int keyval, void *value);

int MPI_Win_delete_attr(MPI_Win win, int keyval);

int PMPI_Win_delete_attr(MPI_Win win, int keyval);

int MPI_Win_create_keyval(MPI_Win_copy_attr_function *copy,
                          MPI_Win_delete_attr_function *delete_,
                          int *keyval,
                          void *extra);

int PMPI_Win_create_keyval(MPI_Win_copy_attr_function *copy,
                           MPI_Win_delete_attr_function *delete_,
                           int *keyval,
                           void *extra);

int MPI_Win_free_keyval(int *keyval);

int PMPI_Win_free_keyval(int *keyval);

int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr);

int PMPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr);

int MPI_Free_mem(void *base);

int PMPI_Free_mem(void *base);

int MPI_Error_string(int errorcode, char *string, int *resultlen);

int PMPI_Error_string(int errorcode, char *string, int *resultlen);

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status);

int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status);

int MPI_Put(const void *origin,
            int origin_count,
            MPI_Datatype origin_type,
            int rank,
            MPI_Aint disp,
            int target_count,
            MPI_Datatype target_type,
            MPI_Win win);

int PMPI_Put(const void *origin,
             int origin_count,
             MPI_Datatype origin_type,
             int rank,
             MPI_Aint disp,
             int target_count,
             MPI_Datatype target_type,
             MPI_Win win);

int MPI_Put_c(const void *origin,
              MPI_Count origin_count,
              MPI_Datatype origin_type,
              int rank,
              MPI_Aint disp,
              MPI_Count target_count,
              MPI_Datatype target_type,
              MPI_Win win);

int PMPI_Put_c(const void *origin,
               MPI_Count origin_count,
               MPI_Datatype origin_type,
               int rank,
               MPI_Aint disp,
               MPI_Count target_count,
               MPI_Datatype target_type,
               MPI_Win win);

int MPI_Rput(const void *origin,
             int origin_count,
             MPI_Datatype origin_type,
             int rank,
             MPI_Aint disp,
             int target_count,
             MPI_Datatype target_type,
             MPI_Win win,
             MPI_Request *request);

int PMPI_Rput(const void *origin,
              int origin_count,
              MPI_Datatype origin_type,
              int rank,
              MPI_Aint disp,
              int target_count,
              MPI_Datatype target_type,
              MPI_Win win,
              MPI_Request *request);

int MPI_Rput_c(const void *origin,
               MPI_Count origin_count,
               MPI_Datatype origin_type,
               int rank,
               MPI_Aint disp,
               MPI_Count target_count,
               MPI_Datatype target_type,
               MPI_Win win,
               MPI_Request *request);

int PMPI_Rput_c(const void *origin,
                MPI_Count origin_count,
                MPI_Datatype origin_type,
                int rank,
                MPI_Aint disp,
                MPI_Count target_count,
                MPI_Datatype target_type,
                MPI_Win win,
                MPI_Request *request);

int MPI_Get(void *origin,
            int origin_count,
            MPI_Datatype origin_type,
            int rank,
            MPI_Aint disp,
            int target_count,
            MPI_Datatype target_type,
            MPI_Win win);

int PMPI_Get(void *origin,
             int origin_count,
             MPI_Datatype origin_type,
             int rank,
             MPI_Aint disp,
             int target_count,
             MPI_Datatype target_type,
             MPI_Win win);

int MPI_Get_c(void *origin,
              MPI_Count origin_count,
              MPI_Datatype origin_type,
              int rank,
              MPI_Aint disp,
              MPI_Count target_count,
              MPI_Datatype target_type,
              MPI_Win win);

int PMPI_Get_c(void *origin,
               MPI_Count origin_count,
               MPI_Datatype origin_type,
               int rank,
               MPI_Aint disp,
               MPI_Count target_count,
               MPI_Datatype target_type,
               MPI_Win win);

int MPI_Rget(void *origin,
             int origin_count,
             MPI_Datatype origin_type,
             int rank,
             MPI_Aint disp,
             int target_count,
             MPI_Datatype target_type,
             MPI_Win win,
             MPI_Request *request);

int PMPI_Rget(void *origin,
              int origin_count,
              MPI_Datatype origin_type,
              int rank,
              MPI_Aint disp,
              int target_count,
              MPI_Datatype target_type,
              MPI_Win win,
              MPI_Request *request);

int MPI_Rget_c(void *origin,
               MPI_Count origin_count,
               MPI_Datatype origin_type,
               int rank,
               MPI_Aint disp,
               MPI_Count target_count,
               MPI_Datatype target_type,
               MPI_Win win,
               MPI_Request *request);

int PMPI_Rget_c(void *origin,
                MPI_Count origin_count,
                MPI_Datatype origin_type,
                int rank,
                MPI_Aint disp,
                MPI_Count target_count,
                MPI_Datatype target_type,
                MPI_Win win,
                MPI_Request *request);

int MPI_Accumulate(const void *origin,
                   int origin_count,
                   MPI_Datatype origin_type,
                   int rank,
                   MPI_Aint disp,
                   int target_count,
                   MPI_Datatype target_type,
                   MPI_Op op,
                   MPI_Win win);

int PMPI_Accumulate(const void *origin,
                    int origin_count,
                    MPI_Datatype origin_type,
                    int rank,
                    MPI_Aint disp,
                    int target_count,
                    MPI_Datatype target_type,
                    MPI_Op op,
                    MPI_Win win);

int MPI_Accumulate_c(const void *origin,
                     MPI_Count origin_count,
                     MPI_Datatype origin_type,
                     int rank,
                     MPI_Aint disp,
                     MPI_Count target_count,
                     MPI_Datatype target_type,
                     MPI_Op op,
                     MPI_Win win);

int PMPI_Accumulate_c(const void *origin,
                      MPI_Count origin_count,
                      MPI_Datatype origin_type,
                      int rank,
                      MPI_Aint disp,
                      MPI_Count target_count,
                      MPI_Datatype target_type,
                      MPI_Op op,
                      MPI_Win win);

int MPI_Raccumulate(const void *origin,
                    int origin_count,
                    MPI_Datatype origin_type,
                    int rank,
                    MPI_Aint disp,
                    int target_count,
                    MPI_Datatype target_type,
                    MPI_Op op,
                    MPI_Win win,
                    MPI_Request *request);

int PMPI_Raccumulate(const void *origin,
                     int origin_count,
                     MPI_Datatype origin_type,
                     int rank,
                     MPI_Aint disp,
                     int target_count,
                     MPI_Datatype target_type,
                     MPI_Op op,
                     MPI_Win win,
                     MPI_Request *request);

int MPI_Raccumulate_c(const void *origin,
                      MPI_Count origin_count,
                      MPI_Datatype origin_type,
                      int rank,
                      MPI_Aint disp,
                      MPI_Count target_count,
                      MPI_Datatype target_type,
                      MPI_Op op,
                      MPI_Win win,
                      MPI_Request *request);

int PMPI_Raccumulate_c(const void *origin,
                       MPI_Count origin_count,
                       MPI_Datatype origin_type,
                       int rank,
                       MPI_Aint disp,
                       MPI_Count target_count,
                       MPI_Datatype target_type,
                       MPI_Op op,
                       MPI_Win win,
                       MPI_Request *request);

int MPI_Get_accumulate(const void *origin,
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
                       MPI_Win win);

int PMPI_Get_accumulate(const void *origin,
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
                        MPI_Win win);

int MPI_Get_accumulate_c(const void *origin,
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
                         MPI_Win win);

int PMPI_Get_accumulate_c(const void *origin,
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
                          MPI_Win win);

int MPI_Rget_accumulate(const void *origin,
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
                        MPI_Win win,
                        MPI_Request *request);

int PMPI_Rget_accumulate(const void *origin,
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
                         MPI_Win win,
                         MPI_Request *request);

int MPI_Rget_accumulate_c(const void *origin,
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
                          MPI_Win win,
                          MPI_Request *request);

int PMPI_Rget_accumulate_c(const void *origin,
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
                           MPI_Win win,
                           MPI_Request *request);

int MPI_Fetch_and_op(const void *origin,
                     void *result,
                     MPI_Datatype datatype,
                     int rank,
                     MPI_Aint disp,
                     MPI_Op op,
                     MPI_Win win);

int PMPI_Fetch_and_op(const void *origin,
                      void *result,
                      MPI_Datatype datatype,
                      int rank,
                      MPI_Aint disp,
                      MPI_Op op,
                      MPI_Win win);

int MPI_Compare_and_swap(const void *origin,
                         const void *compare,
                         void *result,
                         MPI_Datatype datatype,
                         int rank,
                         MPI_Aint disp,
                         MPI_Win win);

int PMPI_Compare_and_swap(const void *origin,
                          const void *compare,
                          void *result,
                          MPI_Datatype datatype,
                          int rank,
                          MPI_Aint disp,
                          MPI_Win win);

int MPI_Win_create(void *base,
                   MPI_Aint size,
                   int disp_unit,
                   MPI_Info info,
                   MPI_Comm comm,
                   MPI_Win *win);

int PMPI_Win_create(void *base,
                    MPI_Aint size,
                    int disp_unit,
                    MPI_Info info,
                    MPI_Comm comm,
                    MPI_Win *win);

int MPI_Win_create_c(void *base,
                     MPI_Aint size,
                     MPI_Aint disp_unit,
                     MPI_Info info,
                     MPI_Comm comm,
                     MPI_Win *win);

int PMPI_Win_create_c(void *base,
                      MPI_Aint size,
                      MPI_Aint disp_unit,
                      MPI_Info info,
                      MPI_Comm comm,
                      MPI_Win *win);

int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win);

int PMPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win);

int MPI_Win_allocate(MPI_Aint size,
                     int disp_unit,
                     MPI_Info info,
                     MPI_Comm comm,
                     void *baseptr,
                     MPI_Win *win);

int PMPI_Win_allocate(MPI_Aint size,
                      int disp_unit,
                      MPI_Info info,
                      MPI_Comm comm,
                      void *baseptr,
                      MPI_Win *win);

int MPI_Win_allocate_c(MPI_Aint size,
                       MPI_Aint disp_unit,
                       MPI_Info info,
                       MPI_Comm comm,
                       void *baseptr,
                       MPI_Win *win);

int PMPI_Win_allocate_c(MPI_Aint size,
                        MPI_Aint disp_unit,
                        MPI_Info info,
                        MPI_Comm comm,
                        void *baseptr,
                        MPI_Win *win);

int MPI_Win_allocate_shared(MPI_Aint size,
                            int disp_unit,
                            MPI_Info info,
                            MPI_Comm comm,
                            void *baseptr,
                            MPI_Win *win);

int PMPI_Win_allocate_shared(MPI_Aint size,
                             int disp_unit,
                             MPI_Info info,
                             MPI_Comm comm,
                             void *baseptr,
                             MPI_Win *win);

int MPI_Win_allocate_shared_c(MPI_Aint size,
                              MPI_Aint disp_unit,
                              MPI_Info info,
                              MPI_Comm comm,
                              void *baseptr,
                              MPI_Win *win);

int PMPI_Win_allocate_shared_c(MPI_Aint size,
                               MPI_Aint disp_unit,
                               MPI_Info info,
                               MPI_Comm comm,
                               void *baseptr,
                               MPI_Win *win);

int MPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, int *disp_unit, void *baseptr);

int PMPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, int *disp_unit, void *baseptr);

int MPI_Win_shared_query_c(MPI_Win win,
                           int rank,
                           MPI_Aint *size,
                           MPI_Aint *disp_unit,
                           void *baseptr);

int PMPI_Win_shared_query_c(MPI_Win win,
                            int rank,
                            MPI_Aint *size,
                            MPI_Aint *disp_unit,
                            void *baseptr);

int MPI_Win_free(MPI_Win *win);

int PMPI_Win_free(MPI_Win *win);

int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint size);

int PMPI_Win_attach(MPI_Win win, void *base, MPI_Aint size);

int MPI_Win_detach(MPI_Win win, const void *base);

int PMPI_Win_detach(MPI_Win win, const void *base);

#ifdef __cplusplus
} /* extern "C" */
#endif /* __cplusplus */

#pragma pop_macro("MPI_Aint_add")
#pragma pop_macro("PMPI_Aint_add")
#pragma pop_macro("MPI_Aint_diff")
#pragma pop_macro("PMPI_Aint_diff")
#pragma pop_macro("MPI_Win_c2f")
#pragma pop_macro("PMPI_Win_c2f")
#pragma pop_macro("MPI_Win_f2c")
#pragma pop_macro("PMPI_Win_f2c")

#endif /* FOMPI_MPI_H */
