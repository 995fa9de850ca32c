"""The reference, which `make reference` builds, explains every public name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import dpfront

pdoc_doc = pytest.importorskip("pdoc.doc")

MODULES = ["dpfront"] + [
    m.name
    for m in pkgutil.walk_packages(dpfront.__path__, "dpfront.")
    if not any(part.startswith("_") or part == "v1" for part in m.name.split("."))
]


def members(of: Any) -> Iterator[Any]:
    """The public names of a module and of its classes. Not all fields need words."""
    for member in of.own_members:
        if member.name.startswith("_") or member.kind == "module":
            continue
        if of.kind == "class" and member.kind == "variable":
            continue
        yield member
        if member.kind == "class":
            yield from members(member)


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_explained(name: str) -> None:
    module = importlib.import_module(name)
    described = pdoc_doc.Module(module)
    assert described.docstring
    if hasattr(module, "__all__"):
        assert {m.name for m in described.own_members} >= set(module.__all__)
    assert [m.fullname for m in members(described) if not m.docstring] == []
