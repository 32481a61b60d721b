-- libfompi @VERSION@ for Lmod: the folders of the tree that this file is in.

whatis("libfompi @VERSION@: one-sided MPI in front of the MPI that is loaded")

local root = myFileName():match("^(.*)/share/modulefiles/fompi/[^/]*$")
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "@LIBDIR@"))
prepend_path("PKG_CONFIG_PATH", pathJoin(root, "@LIBDIR@/pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", root)
