PROGRAMS += dsde

DSDE := $(addprefix $(HERE)dsde/,dsde.c protocols.c)
$(OUT)/dsde: $(DSDE) $(HERE)dsde/dsde.h $(HERE)example.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $(DSDE)
