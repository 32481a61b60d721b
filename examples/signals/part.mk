PROGRAMS += shmem_signal coarray_event

$(OUT)/shmem_signal $(OUT)/coarray_event: $(OUT)/%: $(HERE)signals/%.c $(HERE)notify.h $(HERE)example.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $<
