PROGRAMS += stencil

STENCIL := $(addprefix $(HERE)stencil/,stencil.c exchange.c grid.c verify.c)
$(OUT)/stencil: $(STENCIL) $(HERE)stencil/stencil.h $(HERE)example.h $(HERE)notify.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $(STENCIL) -lm
