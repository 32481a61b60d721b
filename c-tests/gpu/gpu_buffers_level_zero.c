// Buffers in memory of a GPU of Level Zero (gpu_buffers.h), on 1 to 3 ranks.
// ranks: 1 3
// gpu: level_zero

#include "gpu_buffers.h"

int main(int argc, char **argv) { return run(argc, argv, "libze_loader.so.1"); }
