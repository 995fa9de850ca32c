"""Puts the program into wheels for one platform."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = "github.com/dpareto/dpareto/cmd/dpareto"


class ProgramHook(BuildHookInterface):
    """Makes a wheel with the program.

    `make wheels` says in the environment where the program is: DPFRONT_PROGRAM is a folder with
    it and THIRD_PARTY_NOTICES.txt, the licences of what it is built from; DPFRONT_PLATFORM is the
    tag of its platform. From a source distribution, Go builds the program of the same version if
    it is installed. Otherwise the wheel is for any platform, and has no program.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files, and sets the tag."""
        if version == "editable":
            return
        folder = os.environ.get("DPFRONT_PROGRAM")
        platform = os.environ.get("DPFRONT_PLATFORM", "")
        if not folder and Path(self.root, "PKG-INFO").exists():  # a source distribution
            folder = self._build()
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        if not folder:
            return
        (program,) = Path(folder).glob("dpareto*")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"][str(program)] = f"dpfront/_bin/{program.name}"
        notices = Path(folder, "THIRD_PARTY_NOTICES.txt")
        if notices.exists():
            licenses = f"dpfront-{self.metadata.version}.dist-info/licenses"
            build_data["force_include"][str(notices)] = f"{licenses}/{notices.name}"

    def _build(self) -> str | None:
        """Builds the program with Go, and returns its folder."""
        go = shutil.which("go")
        if go is None:
            self.app.display_warning(
                "dpfront is built without the program dpareto, which needs Go 1.26 "
                "(https://go.dev/dl/): local_server() will look in DPARETO_BINARY and PATH"
            )
            return None
        folder = tempfile.mkdtemp(prefix="dpfront-")
        subprocess.run(
            [go, "install", "-trimpath", "-ldflags=-s -w", f"{MODULE}@v{self.metadata.version}"],
            env={**os.environ, "GOBIN": folder, "CGO_ENABLED": "0"},
            check=True,
        )
        return folder
