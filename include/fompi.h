/* libfompi: version and extensions. Written by scripts/dev/headers. */

#ifndef FOMPI_H
#define FOMPI_H

#include <stdint.h>

#define FOMPI_VERSION "0.3.0-dev"
#define FOMPI_VERSION_MAJOR 0
#define FOMPI_VERSION_MINOR 3
#define FOMPI_VERSION_PATCH 0

typedef struct fompi_verbs_counts {
  uint64_t contacted;
  uint64_t accepted;
  uint64_t regions;
  uint64_t registered_bytes;
  uint64_t registrations;
  uint64_t puts;
  uint64_t gets;
  uint64_t atomics;
  uint64_t reads;
  uint64_t proofs;
  uint64_t waits;
  uint64_t doorbells;
} fompi_verbs_counts;

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

int fompi_get_verbs_counts(struct fompi_verbs_counts *counts);

const char *fompi_version(void);

#ifdef __cplusplus
} /* extern "C" */
#endif /* __cplusplus */

#endif /* FOMPI_H */
