// Buffers in memory of a GPU of HIP, with the numbers of ROCm 5 (gpu_buffers.h), on 1 to 3
// ranks.
// ranks: 1 3
// gpu: hip
// settings: CHECK_HIP_MAJOR=5

#include "gpu_buffers.h"

int main(int argc, char **argv) { return run(argc, argv, "libamdhip64.so.6"); }
