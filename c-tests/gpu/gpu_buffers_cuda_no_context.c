// Buffers in memory of a GPU of CUDA, of a thread without a current context (gpu_buffers.h), on 1
// to 3 ranks.
// ranks: 1 3
// gpu: cuda
// settings: CHECK_NO_CONTEXT=1

#include "gpu_buffers.h"

int main(int argc, char **argv) { return run(argc, argv, "libcuda.so.1"); }
