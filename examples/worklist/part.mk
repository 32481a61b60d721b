PROGRAMS += worklist
$(OUT)/worklist: $(addprefix $(HERE)worklist/,worklist.c counter.c stealing.c messages.c notify.c) \
  $(HERE)worklist/worklist.h $(HERE)example.h $(HERE)notify.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $(filter %.c,$^)
