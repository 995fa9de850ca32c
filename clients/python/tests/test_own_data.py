"""The tutorial on own data works as printed, and Python predicts what the program predicts."""

from __future__ import annotations

import csv
import json
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


@pytest.fixture
def folder(binary: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, in which ``dpareto`` is the program and reaches the server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPARETO_SERVER", server.address)
    program = tmp_path / "bin" / "dpareto"
    program.parent.mkdir()
    program.symlink_to(Path(binary).resolve())
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def shell(script: str) -> None:
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], check=True)


def predictions() -> list[dict[str, str]]:
    with open("predictions.csv") as file:
        return list(csv.DictReader(file))


def test_tutorial(folder: Path) -> None:
    numpy = pytest.importorskip("numpy")
    pytest.importorskip("onnxruntime")
    shell("\n".join(blocks("sh")))
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(block, names)
    rows = predictions()
    assert len(rows) == 100
    assert names["labels"][:, 0].tolist() == [row["repaid"] for row in rows]
    predicted = [float(row["p_yes"]) for row in rows]
    assert numpy.allclose(names["probabilities"][:, 1], predicted, atol=1e-5)


def test_cells_of_other_programs(folder: Path) -> None:
    """Blanks around cells, and a text for missing values that only this schema has."""
    pytest.importorskip("numpy")
    pytest.importorskip("onnxruntime")
    shell("""
        dpareto data example loans --rows 400 | sed 's/,,/,-,/g; s/,/ , /g' > old.csv
        dpareto data example loans --rows 50 --seed 2 | sed 's/,,/,-,/g; s/,/ , /g' > new.csv
        dpareto data schema old.csv --public-rows 400 --missing - --label repaid > s.yaml
        sed -i 's/rows: private/rows: public/' s.yaml
        dpareto study init --data old.csv --schema s.yaml --id m --trials 1 --file study.yaml
        dpareto study create study.yaml
        dpareto agent --study m
        dpareto train m --recommend epsilon=100 --out model
        dpareto predict model new.csv > predictions.csv
        sed -i '1s/ //g' new.csv
    """)
    names: dict[str, Any] = {}
    exec(blocks("python")[-1], names)
    assert names["labels"][:, 0].tolist() == [row["repaid"] for row in predictions()]
    assert "-" in Path("new.csv").read_text()


@pytest.mark.parametrize(("example", "label"), [("rents", "rent"), ("crops", "crop")])
def test_models_of_other_labels(folder: Path, example: str, label: str) -> None:
    """A number and seven classes; and a row that the program refuses."""
    numpy = pytest.importorskip("numpy")
    onnxruntime = pytest.importorskip("onnxruntime")
    shell(f"""
        dpareto data example {example} --rows 2000 > data.csv
        dpareto data example {example} --rows 50 --seed 2 > new.csv
        dpareto data schema data.csv --public-rows 500 --label {label} --number-public > s.yaml
        dpareto study init --data data.csv --schema s.yaml --id m --trials 2 --file study.yaml
        dpareto study create study.yaml
        dpareto agent --study m
        dpareto train m --recommend epsilon=100 --out model
        dpareto predict model new.csv > predictions.csv
    """)
    schema = json.loads(Path("model/card.json").read_text())["schema"]
    with open("new.csv") as file:
        rows = list(csv.DictReader(file))
    columns = {}
    for feature in schema["features"]:
        cells = [[row[feature["column"]]] for row in rows]
        numbers = "range" in feature
        columns[feature["column"]] = (
            numpy.array([[float(c or "nan")] for [c] in cells])
            if numbers
            else numpy.array(cells, object)
        )
    session = onnxruntime.InferenceSession("model/model.onnx")
    answer = session.run(None, columns)
    wanted = predictions()
    if len(answer) == 1:
        assert numpy.allclose(answer[0][:, 0], [float(w[label]) for w in wanted], rtol=1e-5)
    else:
        assert answer[0][:, 0].tolist() == [w[label] for w in wanted]
        classes = schema["label"]["values"]
        probabilities = [[float(w[f"p_{c}"]) for c in classes] for w in wanted]
        assert numpy.allclose(answer[1], probabilities, atol=1e-5)
    refused = next(f["column"] for f in schema["features"] if "range" in f and "missing" not in f)
    columns[refused][3] = numpy.nan
    columns[refused][5] = -numpy.inf
    first, *others = session.run(None, columns)
    assert [i for i, [x] in enumerate(first) if x == "" or x != x] == [3, 5]
    assert all(numpy.isnan(x[[3, 5]]).all() and not numpy.isnan(x[4]).any() for x in others)
