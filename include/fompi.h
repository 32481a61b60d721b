/* libfompi: version and extensions. Written by scripts/dev/headers. */

#ifndef FOMPI_H
#define FOMPI_H

#include <stdint.h>

#define FOMPI_VERSION "0.3.0-dev"
#define FOMPI_VERSION_MAJOR 0
#define FOMPI_VERSION_MINOR 3
#define FOMPI_VERSION_PATCH 0

/* The connections, the registered memory and the requests of this process between nodes, since it
 * began. Over TCP, too, in spite of the name. Operations on memory of the own node are not
 * counted: in a job on one node all counters are 0. */
typedef struct fompi_verbs_counts {
  /* connections that this process has opened: processes that it has contacted */
  uint64_t contacted;
  /* connections that others have opened to this process */
  uint64_t accepted;
  /* regions of memory that are registered with the device, or that TCP serves */
  uint64_t regions;
  /* bytes of these regions */
  uint64_t registered_bytes;
  /* registrations for one operation: of a buffer that was not registered before */
  uint64_t registrations;
  /* requests that write data to the target (RDMA WRITE) */
  uint64_t puts;
  /* requests that read data from the target (RDMA READ) */
  uint64_t gets;
  /* atomic requests (fetch-and-add, compare-and-swap), with an answer or without */
  uint64_t atomics;
  /* requests that read a control word of the target */
  uint64_t reads;
  /* requests of flushes that read a word to learn that earlier writes are done */
  uint64_t proofs;
  /* times that this process waited for an answer: round trips */
  uint64_t waits;
  /* times that requests were handed to the device or to TCP: one request, or a chain of them */
  uint64_t doorbells;
} fompi_verbs_counts;

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

/* Stores the counters of this process. Returns 1 if it has opened an RDMA device or TCP, as it
 * does for its first window over several nodes; else 0, with all counters 0. Not MPI; raises no
 * error. */
int fompi_get_verbs_counts(struct fompi_verbs_counts *counts);

/* Returns the version of this library, as FOMPI_VERSION in fompi.h, which a program was compiled
 * with: "0.2.0" is a release, "0.3.0-dev" a build on the way to the next one. Not MPI; raises no
 * error. */
const char *fompi_version(void);

#ifdef __cplusplus
} /* extern "C" */
#endif /* __cplusplus */

#endif /* FOMPI_H */
