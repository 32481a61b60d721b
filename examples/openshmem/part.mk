PROGRAMS += shmem_histogram

OPENSHMEM := $(addprefix $(HERE)openshmem/,histogram.c shmem.c)
$(OUT)/shmem_histogram: $(OPENSHMEM) $(HERE)openshmem/shmem.h $(HERE)handles.h $(HERE)example.h $(HERE)../include/fompi_rma.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $(OPENSHMEM)
