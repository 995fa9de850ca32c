"""Puts the program into wheels for one platform."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    """Makes a wheel with the program, if the environment says where it is (`make wheels`).

    DPFRONT_PROGRAM is a folder with the program and THIRD_PARTY_NOTICES.txt, the licences of
    what it is built from; DPFRONT_PLATFORM is the tag of its platform. Without them the wheel
    is for any platform, and has no program.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files, and sets the tag."""
        folder = os.environ.get("DPFRONT_PROGRAM")
        if not folder or version == "editable":
            return
        (program,) = Path(folder).glob("dpareto*")
        notices = Path(folder, "THIRD_PARTY_NOTICES.txt")
        licenses = f"dpfront-{self.metadata.version}.dist-info/licenses"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['DPFRONT_PLATFORM']}"
        build_data["force_include"] |= {
            str(program): f"dpfront/_bin/{program.name}",
            str(notices): f"{licenses}/{notices.name}",
        }
