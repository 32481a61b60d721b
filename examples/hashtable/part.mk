PROGRAMS += hashtable
$(OUT)/hashtable: $(addprefix $(HERE)hashtable/,hashtable.c table.c onesided.c pipelined.c) \
  $(addprefix $(HERE)hashtable/,messages.c table.h) $(HERE)example.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $(filter %.c,$^)
