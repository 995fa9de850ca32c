"""Builds the reference of all public names from their docstrings: python tools/reference.py FOLDER.

The names are those of ``dpfront.__all__``, and of modules that have an ``__all__`` of their own
and can be imported: install the extras whose modules it should have.
Public classes are shown with what they inherit from private modules, which have no page.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from typing import Any

import pdoc
import pdoc.doc

import dpfront


def is_public(name: str) -> bool:
    """Reports whether a module has an ``__all__``; those whose extra is not installed have none."""
    try:
        return hasattr(importlib.import_module(name), "__all__")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("dpfront"):
            raise
        print(f"{name} is left out: it needs {error.name}", file=sys.stderr)
        return False


MODULES = ["dpfront"] + [
    module.name
    for module in pkgutil.walk_packages(dpfront.__path__, "dpfront.")
    if not any(part.startswith("_") or part == "v1" for part in module.name.split("."))
    and is_public(module.name)
]


def own_members(of: Any) -> list[Any]:
    """Returns the members of a class, with those that it inherits from private modules."""
    own = {(of.modulename, of.qualname), of.taken_from}
    return [
        member
        for origin, members in of._members_by_origin.items()
        if origin in own or origin[0].startswith("dpfront._")
        for member in members
    ]


if __name__ == "__main__":
    pdoc.doc.Class.own_members = property(own_members)  # type: ignore[assignment, method-assign]
    pdoc.render.configure(docformat="google")
    pdoc.pdoc(*MODULES, output_directory=Path(sys.argv[1]))
