PROGRAMS += lattice
LATTICE_FILES := lattice.c geometry.c links.c cg.c check.c halo_messages.c halo_flags.c \
	halo_datatypes.c halo_notify.c
LATTICE := $(addprefix $(HERE)lattice/,$(LATTICE_FILES))

$(OUT)/lattice: $(LATTICE) $(wildcard $(HERE)lattice/*.h) $(HERE)example.h $(HERE)notify.h | $(OUT)
	$(MPICC) $(CFLAGS) -O3 -o $@ $(LATTICE) -lm
