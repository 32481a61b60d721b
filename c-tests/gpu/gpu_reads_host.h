// Memory of the host that a GPU reads and writes by itself, with windows over it: what the GPU
// reads is what MPI_Put has put there, and MPI_Get gets what the GPU has written; also once the
// window is freed. The GPU keeps using the pages that were there when the memory was registered.

#ifndef GPU_READS_HOST_H
#define GPU_READS_HOST_H

#include "gpu.h"

enum { BYTES = 256 << 10 };

static MPI_Win win;
static unsigned char *scratch, *on_device;

static void fill(unsigned char *at, int seed)
{
    for (int i = 0; i < BYTES; i++)
        at[i] = (unsigned char)(seed + i + (i >> 12) * 3);
}

static void check_filled(const unsigned char *at, int seed)
{
    for (int i = 0; i < BYTES; i++)
        CHECK_EQ(at[i], (unsigned char)(seed + i + (i >> 12) * 3));
}

static void start(void)
{
    gpu_start("libcuda.so.1");
    scratch = host_pages(BYTES);
    on_device = gpu_allocate(DEVICE, BYTES);
}

static void gpu_copies_host(void *to, const void *from, const void *pinned)
{
    if (has_gpu())
        driver_copies(to, from, pinned, BYTES);
    else
        memcpy(to, from, BYTES);
}

// The GPU must find these values in the buffer.
static void check_gpu_reads(unsigned char *buffer, int seed)
{
    gpu_copies_host(on_device, buffer, buffer);
    memset(scratch, 0, BYTES);
    gpu_read(DEVICE, scratch, on_device, BYTES);
    check_filled(scratch, seed);
}

static void gpu_writes(unsigned char *buffer, int seed)
{
    fill(scratch, seed);
    gpu_write(DEVICE, on_device, scratch, BYTES);
    gpu_copies_host(buffer, on_device, buffer);
}

static void open_window(unsigned char *buffer)
{
    OK(MPI_Win_create(buffer, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
}

// Puts and gets of a neighbour during copies of the GPU.
static void use_window(unsigned char *buffer, int seed)
{
    unsigned char *other = host_pages(BYTES);
    fill(other, seed + rank);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(other, BYTES, MPI_BYTE, next_rank(), 0, BYTES, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    check_gpu_reads(buffer, seed + previous_rank());
    gpu_writes(buffer, seed + 50 + rank);
    check_filled(buffer, seed + 50 + rank);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(other, BYTES, MPI_BYTE, next_rank(), 0, BYTES, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    check_filled(other, seed + 50 + next_rank());
    free(other);
}

// Without a window.
static void use_alone(unsigned char *buffer, int seed)
{
    fill(buffer, seed);
    check_gpu_reads(buffer, seed);
    gpu_writes(buffer, seed + 1);
    check_filled(buffer, seed + 1);
}

#endif
