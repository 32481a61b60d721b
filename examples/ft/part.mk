# FFTW is libfftw3-dev of Debian. The Fortran program also needs the module mpi_f08 of an MPI that
# was built with this compiler. What is missing is left out, and a line says so.
FT := $(HERE)ft/
FT_LIBS := -lfftw3 -lm
FT_HEADERS := $(or $(shell pkg-config --variable=includedir fftw3 2>/dev/null),/usr/include)

# $(call ft_compiles,LANGUAGE,TEXT,COMMAND): `yes` if a program of this text compiles and links.
ft_compiles = $(shell d=$$(mktemp -d) && printf '$(2)\n' >$$d/probe.$(1) && \
    $(3) -o $$d/probe $$d/probe.$(1) $(FT_LIBS) >/dev/null 2>&1 && echo yes; rm -rf $$d)

ifneq ($(call ft_compiles,c,int main(void) { fftw_cleanup(); },$(MPICC) -include fftw3.h),yes)
  $(info examples: ft and ft_f are left out: no FFTW (libfftw3-dev) for $(MPICC))
else
  PROGRAMS += ft
  ifneq ($(call ft_compiles,f90,use mpi_f08\ncall MPI_Init()\nend,$(MPIFC)),yes)
    $(info examples: ft_f is left out: $(MPIFC) does not compile `use mpi_f08`)
  else
    PROGRAMS += ft_f
  endif
endif

FT_C := $(addprefix $(FT),ft.c exchange.c problem.c published.c)
$(OUT)/ft: $(FT_C) $(FT)ft.h $(HERE)example.h | $(OUT)
	$(MPICC) $(CFLAGS) -o $@ $(FT_C) $(FT_LIBS)

FT_F := $(addprefix $(FT),ft_grid.f90 ft_f.f90)
$(OUT)/ft_f: $(FT_F) $(FT)published.c $(FT)ft.h | $(OUT)
	$(MPICC) $(CFLAGS) -c -o $(OUT)/ft_published.o $(FT)published.c
	$(MPIFC) $(FFLAGS) -J $(OUT) -I $(FT_HEADERS) -o $@ $(FT_F) $(OUT)/ft_published.o $(FT_LIBS)
