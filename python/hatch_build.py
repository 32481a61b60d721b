"""What the wheel has besides the module: the files of an installation.

The programs become scripts of the wheel. The library, the headers, the files for pkg-config and
CMake, and what the programs need become its data. pip puts them into `bin` and `lib` of one
folder, so the programs find the library as in any other installation. The pages and the module
files stay out.

WHEEL_PREFIX      the installation, made by scripts/install; without it this runs scripts/install,
                  which needs Rust
WHEEL_PLATFORM    the platform of the wheel, such as manylinux_2_28_x86_64; without it that of this
                  machine
"""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEFT_OUT = ("share/doc/", "share/modulefiles/")


class InstallationHook(BuildHookInterface):
    """Adds the files of an installation to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            raise RuntimeError("fompi cannot be installed as editable: use `pip install ./python`")
        prefix = Path(os.environ.get("WHEEL_PREFIX") or self.installed())
        if not (prefix / "lib" / "libfompi.so").is_file():
            raise RuntimeError(f"no lib/libfompi.so in {prefix}, which WHEEL_PREFIX names")
        machine = re.sub("[-.]", "_", sysconfig.get_platform())
        platform = os.environ.get("WHEEL_PLATFORM") or machine
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        for path in sorted(path for path in prefix.rglob("*") if path.is_file()):
            name = path.relative_to(prefix).as_posix()
            if name.startswith("bin/"):
                build_data["shared_scripts"][str(path)] = path.name
            elif not name.startswith(LEFT_OUT):
                build_data["shared_data"][str(path)] = name

    def installed(self) -> str:
        """Builds the library and installs it; the folder lives as long as this object."""
        self.folder = tempfile.TemporaryDirectory(prefix="fompi.")
        script = Path(self.root).parent / "scripts" / "install"
        subprocess.run([script, self.folder.name], check=True, env={**os.environ, "LIBDIR": "lib"})
        return self.folder.name
