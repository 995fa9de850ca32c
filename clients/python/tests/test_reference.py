"""The reference of the site explains every public name."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import dpfront

MODULES = ["dpfront"] + [
    module.name
    for module in pkgutil.walk_packages(dpfront.__path__, "dpfront.")
    if not any(part.startswith("_") or part == "v1" for part in module.name.split("."))
    and hasattr(importlib.import_module(module.name), "__all__")
]


def members(of: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, with those that it inherits from ours."""
    for base in of.__mro__:
        if base.__module__.startswith("dpfront"):
            for name, member in vars(base).items():
                kinds = (staticmethod, classmethod, property)
                if not name.startswith("_") and (callable(member) or isinstance(member, kinds)):
                    yield f"{of.__qualname__}.{name}", member


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_explained(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    unexplained = []
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isfunction(value):
            own = members(value) if inspect.isclass(value) else ()
            unexplained += [n for n, v in [(public, value), *own] if not inspect.getdoc(v)]
    assert unexplained == []
