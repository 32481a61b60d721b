"""libfompi for Spack: put this file into packages/fompi of a repository, next to the source archive.

The MPI is no dependency: one library serves each MPI that a program uses.
"""

import os

from spack.package import *


class Fompi(Package):
    """One-sided MPI (RMA) in front of the MPI that is installed: MPICH, Open MPI, Intel MPI."""

    # The archive of scripts/release --source, which has the crates, so the build needs no network.
    url = "file://{0}/fompi-@VERSION@-source.tar.xz".format(os.path.dirname(__file__))

    license("MIT OR Apache-2.0", checked_by="fompi")

    version("@VERSION@", sha256="@SHA256@")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("python@3.6:", type="run")  # fompi-model

    conflicts("platform=darwin", msg="libfompi is for Linux")

    def install(self, spec, prefix):
        Executable(join_path(self.stage.source_path, "scripts", "install"))(prefix)

    def setup_run_environment(self, env):
        env.set("FOMPI_LIB", self.prefix.lib.join("libfompi.so"))
