PROGRAMS += patterns

PATTERNS_FILES := $(addprefix $(HERE)patterns/,patterns.c exchange.c check.c box.c lists.c \
    weather.c grids.c atoms.c seismic.c particles.c transposes.c)

$(OUT)/patterns: $(PATTERNS_FILES) $(wildcard $(HERE)patterns/*.h) $(HERE)example.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $(PATTERNS_FILES) -lm
