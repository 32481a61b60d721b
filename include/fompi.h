/* libfompi: version and extensions. Written by scripts/headers. */

#ifndef FOMPI_H
#define FOMPI_H

#define FOMPI_VERSION "0.1.0"
#define FOMPI_VERSION_MAJOR 0
#define FOMPI_VERSION_MINOR 1
#define FOMPI_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

const char *fompi_version(void);

#ifdef __cplusplus
} /* extern "C" */
#endif /* __cplusplus */

#endif  /* FOMPI_H */
