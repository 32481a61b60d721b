PROGRAMS += worklist
$(OUT)/worklist: $(addprefix $(HERE)worklist/,worklist.c counter.c stealing.c messages.c) \
  $(HERE)worklist/worklist.h $(HERE)example.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $(filter %.c,$^)
