/* libfompi: version and extensions. Written by scripts/dev/headers. */

#ifndef FOMPI_H
#define FOMPI_H

#include <stdint.h>

#define FOMPI_VERSION "0.4.0-dev"
#define FOMPI_VERSION_MAJOR 0
#define FOMPI_VERSION_MINOR 4
#define FOMPI_VERSION_PATCH 0

/* Connections, registered memory and requests of this process between nodes since its start, also
 * over TCP, in spite of the name. Operations on memory of the same node are not counted: in a job
 * on one node all counters are 0. */
typedef struct fompi_verbs_counts {
  /* connections that this process has opened */
  uint64_t contacted;
  /* connections that other processes have opened to this process */
  uint64_t accepted;
  /* regions of memory that are registered with the device, or that TCP serves */
  uint64_t regions;
  /* bytes of these regions */
  uint64_t registered_bytes;
  /* registrations of a buffer for one operation */
  uint64_t registrations;
  /* requests that write data to the target (RDMA WRITE) */
  uint64_t puts;
  /* requests that read data from the target (RDMA READ) */
  uint64_t gets;
  /* atomic requests (fetch-and-add, compare-and-swap), with or without a result */
  uint64_t atomics;
  /* requests that read a control word of the target */
  uint64_t reads;
  /* reads by flushes that confirm the completion of earlier writes */
  uint64_t proofs;
  /* waits of this process for a response: round trips */
  uint64_t waits;
  /* submissions to the device or to TCP, each of one request or a chain of requests */
  uint64_t doorbells;
} fompi_verbs_counts;

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

/* Stores the counters of this process. Returns 1 if it has opened an RDMA device or TCP, which it
 * does for its first window over several nodes; otherwise returns 0 and all counters are 0. Not an
 * MPI function; raises no error. */
int fompi_get_verbs_counts(struct fompi_verbs_counts *counts);

/* Returns the version of libfompi, in the form of FOMPI_VERSION in fompi.h, with which a program
 * was compiled: "0.2.0" is a release, "0.3.0-dev" a development version. Not an MPI function;
 * raises no error. */
const char *fompi_version(void);

#ifdef __cplusplus
} /* extern "C" */
#endif /* __cplusplus */

#endif /* FOMPI_H */
