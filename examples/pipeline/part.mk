PROGRAMS += pipeline

PIPELINE := $(addprefix $(HERE)pipeline/,pipeline.c patterns.c synchronisation.c)
$(OUT)/pipeline: $(PIPELINE) $(HERE)pipeline/pipeline.h $(HERE)notify.h $(HERE)example.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $(PIPELINE)
