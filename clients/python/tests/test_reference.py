"""The reference, which `make reference` builds, explains every public name."""

from __future__ import annotations

import importlib
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pdoc_doc = pytest.importorskip("pdoc.doc")

TOOL = runpy.run_path(str(Path(__file__).resolve().parents[1] / "tools" / "reference.py"))


def members(of: Any) -> Iterator[Any]:
    """The public names of a module and of its classes. Not all fields need words."""
    for member in TOOL["own_members"](of) if of.kind == "class" else of.own_members:
        if member.name.startswith("_") or member.kind == "module":
            continue
        if of.kind == "class" and member.kind == "variable":
            continue
        yield member
        if member.kind == "class":
            yield from members(member)


@pytest.mark.parametrize("name", TOOL["MODULES"])
def test_every_public_name_is_explained(name: str) -> None:
    module = importlib.import_module(name)
    described = pdoc_doc.Module(module)
    assert described.docstring
    if hasattr(module, "__all__"):
        assert {m.name for m in described.own_members} >= set(module.__all__)
    assert [m.fullname for m in members(described) if not m.docstring] == []
