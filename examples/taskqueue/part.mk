PROGRAMS += taskqueue
$(OUT)/taskqueue: $(HERE)taskqueue/taskqueue.c $(HERE)handles.h $(HERE)example.h $(HERE)../include/fompi_rma.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $(HERE)taskqueue/taskqueue.c
