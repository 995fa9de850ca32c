"""The tutorial on own data works as printed, and Python predicts what the program predicts."""

from __future__ import annotations

import csv
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .conftest import Server

TUTORIAL = (Path(__file__).resolve().parents[3] / "docs" / "tutorials" / "own-data.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL)


def test_tutorial(
    binary: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numpy = pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPARETO_SERVER", server.address)
    program = tmp_path / "bin" / "dpareto"
    program.parent.mkdir()
    program.symlink_to(Path(binary).resolve())
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(blocks("sh"))], check=True)
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(block, names)
    with open("predictions.csv") as file:
        predicted = [float(row["p_yes"]) for row in csv.DictReader(file)]
    assert len(predicted) == 100
    probabilities = 1 / (1 + numpy.exp(-names["scores"][:, 0]))
    assert numpy.allclose(probabilities, predicted, atol=1e-5)
