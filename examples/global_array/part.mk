# In C++17. Without a compiler for it the program is left out, and a line says so.
ifneq ($(shell d=$$(mktemp -d) && echo 'int main() {}' >$$d/a.cpp && $(MPICC) -x c++ -std=c++17 -o $$d/a $$d/a.cpp \
    -lstdc++ >/dev/null 2>&1 && echo yes; rm -rf $$d),yes)
  $(info examples: global_array is left out: $(MPICC) compiles no C++17 (g++))
else
  PROGRAMS += global_array
endif

$(OUT)/global_array: $(HERE)global_array/transpose.cpp $(HERE)global_array/global_array.hpp $(HERE)handles.h $(HERE)example.h \
    $(HERE)../include/fompi_rma.h | $(OUT)
	$(MPICC) -x c++ $(CXXFLAGS) -o $@ $< -lstdc++
