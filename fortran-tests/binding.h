! The beginning of a module that is compiled three times, once for each binding: F08 is defined for
! mpi_f08, MODULE for the module mpi, neither for mpif.h. The handles and the place for an address
! have the types that the binding gives them.

#if defined(F08)
  use mpi_f08
#elif defined(MODULE)
  use mpi
#endif
  use, intrinsic :: iso_c_binding
  implicit none
#if !defined(F08) && !defined(MODULE)
  include 'mpif.h'
#endif

#if defined(F08)
#define WIN_T type(MPI_Win)
#define COMM_T type(MPI_Comm)
#define INFO_T type(MPI_Info)
#define GROUP_T type(MPI_Group)
#define REQUEST_T type(MPI_Request)
#define DATATYPE_T type(MPI_Datatype)
#define OP_T type(MPI_Op)
#define ERRHANDLER_T type(MPI_Errhandler)
#else
#define WIN_T integer
#define COMM_T integer
#define INFO_T integer
#define GROUP_T integer
#define REQUEST_T integer
#define DATATYPE_T integer
#define OP_T integer
#define ERRHANDLER_T integer
#endif

#if defined(F08) || defined(MODULE)
#define BASE_T type(c_ptr)
#else
#define BASE_T integer(MPI_ADDRESS_KIND)
#endif

  integer :: my_rank, ranks, next, previous, ierr
