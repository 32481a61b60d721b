PROGRAMS += hashtable
$(OUT)/hashtable: $(addprefix $(HERE)hashtable/,hashtable.c table.c onesided.c messages.c table.h) \
  $(HERE)example.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $(filter %.c,$^)
