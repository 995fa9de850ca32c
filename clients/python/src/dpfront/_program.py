"""Where the program dpareto is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dpfront.errors import ServerError

# The program of the package; wheels without a platform have none.
_BUNDLED = Path(__file__).parent / "_bin" / ("dpareto.exe" if os.name == "nt" else "dpareto")


def find_binary(binary: str | os.PathLike[str] | None = None) -> str:
    """Returns the path of the program."""
    name = os.fspath(binary) if binary is not None else os.environ.get("DPARETO_BINARY")
    if not name and _BUNDLED.exists():
        return str(_BUNDLED)
    found = shutil.which(name or "dpareto")
    if found is not None:
        return found
    if name:
        raise ServerError(f"{name} is not a program")
    raise ServerError(
        "there is no dpareto in PATH, and dpfront was installed without it: only its wheels for a "
        "platform (Linux, macOS, Windows) have it. Install one of them, or build the program with "
        "`make build` in a clone of the repository and pass binary=..., or set DPARETO_BINARY"
    )
