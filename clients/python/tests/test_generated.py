"""Generated code matches the contract and the client for asyncio."""

from __future__ import annotations

import filecmp
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]


def test_generated_code_is_up_to_date(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools")
    pytest.importorskip("unasync")
    subprocess.run([sys.executable, PACKAGE / "tools" / "generate.py", tmp_path], check=True)
    for folder in ("v1", "_details", "_sync"):
        fresh, committed = tmp_path / "dpfront" / folder, PACKAGE / "src" / "dpfront" / folder
        names = sorted(p.name for p in fresh.iterdir())
        assert names == sorted(p.name for p in committed.iterdir() if p.name != "__pycache__")
        _, different, missing = filecmp.cmpfiles(fresh, committed, names, shallow=False)
        assert not different, "run make generate-python"
        assert not missing, "run make generate-python"
