PROGRAMS += chains
$(OUT)/chains: $(HERE)chains/chains.c $(HERE)handles.h $(HERE)example.h $(HERE)../include/fompi_rma.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $(HERE)chains/chains.c
