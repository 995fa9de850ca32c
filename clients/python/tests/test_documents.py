"""What the documents print works as printed."""

from __future__ import annotations

import ast
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dpfront

from .conftest import METRICS, PARAMETERS, Server, make_study

PACKAGE = Path(__file__).resolve().parents[1]
README = (PACKAGE / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def run(binary: str, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DPARETO_BINARY", binary)
    process = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_the_first_example_of_the_readme(
    binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "first.py"
    program.write_text(BLOCKS[0])
    body = BLOCKS[0].split("\n\n", 1)[1]
    assert len(body.strip().splitlines()) <= 10
    out = run(binary, str(program), monkeypatch=monkeypatch)
    assert "error" in out
    assert "epsilon" in out
    assert "'noise_multiplier': " in out.splitlines()[-1]


def test_the_study_of_the_readme_is_short() -> None:
    assert len(BLOCKS[1].strip().splitlines()) <= 15


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_all_blocks_are_python(block: int) -> None:
    ast.parse(BLOCKS[block])


@pytest.mark.parametrize("page", ["clusters", "frameworks", "import-results", "opacus", "trackers"])
def test_blocks_of_other_pages_are_python(page: str) -> None:
    folder = "reference" if page == "frameworks" else "how-to"
    text = (PACKAGE.parents[1] / "docs" / folder / f"{page}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        ast.parse(block)


@pytest.mark.parametrize(
    ("example", "arguments"),
    [
        ("logistic_regression.py", ["--trials", "4"]),
        ("optuna_bridge.py", ["--trials", "4"]),
        ("scikit_learn.py", ["--trials", "4"]),
    ],
)
def test_examples(
    binary: str, example: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if example == "scikit_learn.py":
        pytest.importorskip("sklearn")
    out = run(binary, str(PACKAGE / "examples" / example), *arguments, monkeypatch=monkeypatch)
    assert re.search(r"^ε +\d+\.\d+  error 0\.\d+", out, re.MULTILINE), out


def test_an_attack_as_an_objective(binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    example = PACKAGE / "examples" / "attacked_study.py"
    assert len(example.read_text().splitlines()) <= 60
    arguments = ["--trials", "2", "--records", "120"]
    out = run(binary, str(example), *arguments, monkeypatch=monkeypatch)
    assert "attack" in out
    assert "error" in out


def test_the_worker(shared_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPARETO_SERVER", shared_server.address)
    command = [sys.executable, str(PACKAGE / "examples" / "worker.py"), "--study", "worker"]
    for arguments, printed in [(["--create", "1"], ""), ([], "trials: 1\n")]:
        assert subprocess.check_output([*command, *arguments], text=True) == printed


def test_the_tutorial_on_pytorch(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loop is one that test_frameworks.py runs; the rest runs here, without PyTorch."""
    page = (PACKAGE.parents[1] / "docs" / "tutorials" / "pytorch.md").read_text()
    loop, study, program, front = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    folder = PACKAGE / "examples" / "with_opacus"
    assert loop in (folder / "table.py").read_text()
    assert loop in (folder / "table_tuned.py").read_text()
    assert (folder / "table_tuned.py").read_text().endswith(program)
    monkeypatch.setenv("DPARETO_SERVER", server.address)
    exec(study, {})
    with dpfront.Client() as client:
        dpfront.Study.load(client, "table").optimize(lambda trial: 0.8 / (1 + trial["sigma"]))
        assert len(dpfront.Study.load(client, "table").trials("state = SUCCEEDED")) == 16
    exec(front, {})
    out = capsys.readouterr().out
    assert "posterior front" in out
    assert "'sigma': " in out.splitlines()[-1]


def python_of(page: str) -> list[str]:
    text = (PACKAGE.parents[1] / "docs" / "how-to" / page).read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_page_on_results(
    client: dpfront.Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    study = make_study(client, max_trials=4)
    study.optimize(lambda trial: 0.25)
    (block,) = python_of("results.md")
    exec(block, {"study": study})
    assert capsys.readouterr().out.startswith("{'epochs': ")
    assert len((tmp_path / "trials.csv").read_text().splitlines()) == 5


def test_the_page_on_the_search_space(client: dpfront.Client) -> None:
    names: dict[str, Any] = {name: getattr(dpfront, name) for name in ("Categorical", "Float")}
    (block,) = python_of("search-space.md")
    exec(block, names)
    study = dpfront.Study.create(client, "spaces", names["parameters"] + PARAMETERS, METRICS)
    values = {
        "optimizer": "adam",
        "learning_rate": 0.1,
        "noise_variance": 1,
        "lot_size": 8,
        "epochs": 1,
    }
    trial = study.enqueue_trial(values)
    assert "momentum" not in trial.params


@pytest.mark.parametrize("example", ["resume.py", "many_workers.py"])
def test_recipes_are_short(example: str) -> None:
    assert (PACKAGE / "examples" / example).read_text().count("\n") <= 60


def test_resuming_after_a_crash(
    binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("DPARETO_BINARY", binary)
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, str(PACKAGE / "examples" / "resume.py"), "--trials", "4"]
    crashed = subprocess.run([*command, "--crash-at", "3"], capture_output=True, text=True)
    assert (crashed.returncode, crashed.stdout) == (1, "trial 1, attempt 1\ntrial 2, attempt 1\n")
    out = run(binary, *command[1:], "--plot", "front.png", monkeypatch=monkeypatch)
    assert sorted(out.splitlines()) == [
        "4 of 4 trials succeeded",
        "trial 3, attempt 2",
        "trial 4, attempt 1",
    ]
    assert (tmp_path / "front.png").stat().st_size > 1000


def test_many_workers(binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "front.png"
    arguments = ["--workers", "2", "--trials", "4", "--plot", str(picture)]
    program = str(PACKAGE / "examples" / "many_workers.py")
    out = run(binary, program, *arguments, monkeypatch=monkeypatch)
    assert out == "4 of 4 trials succeeded\n"
    assert picture.stat().st_size > 1000


@pytest.mark.long
def test_the_notebook(binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("DPARETO_BINARY", binary)
    notebook = nbformat.read(PACKAGE / "examples" / "tour.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear it before a commit"
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(PACKAGE / "examples")}}
    )
    client.execute()
    outputs = [o.get("data", {}) for cell in notebook.cells for o in cell.get("outputs", [])]
    assert sum("image/png" in data for data in outputs) == 5
    assert sum("text/html" in data for data in outputs) == 6


def test_suggesting_in_the_readme(client: dpfront.Client) -> None:
    (block,) = [b for b in BLOCKS if "suggest_float" in b and "optuna" not in b]
    names: dict[str, Any] = {
        "dpfront": dpfront,
        "Float": dpfront.Float,
        "client": client,
        "platform": platform,
        "metrics": [
            dpfront.Minimize("error", 1),
            dpfront.epsilon(
                dpfront.opacus(dataset_size=10_000, batch_size=100, epochs=5, delta=1e-6)
            ),
        ],
        "error_of": lambda rate, sigma: 0.1 + 0.01 * sigma + 0.1 * abs(rate - 0.1),
    }
    exec(block, names)
    study, wider = names["study"], names["wider"]
    assert len(study.trials("state = SUCCEEDED")) == 6
    assert {"learning_rate": 0.1, "noise_multiplier": 2.0} in [t.params for t in study.trials()]
    assert study.trials()[0].user_attrs == {"host": platform.node()}
    assert wider.parameters[-1].id == "clip"
    (block,) = [b for b in BLOCKS if "print(study.recommend" in b and "local_server" not in b]
    exec(block, names)


def test_optuna_in_the_readme(client: dpfront.Client) -> None:
    optuna = pytest.importorskip("optuna")
    (block,) = [b for b in BLOCKS if "integrations.optuna" in b]
    names: dict[str, Any] = {
        "dpfront": dpfront,
        "Maximize": dpfront.Maximize,
        "optuna": optuna,
        "FloatDistribution": optuna.distributions.FloatDistribution,
        "IntDistribution": optuna.distributions.IntDistribution,
        "client": client,
        "privacy": dpfront.opacus(dataset_size=10_000, batch_size=100, epochs="epochs", delta=1e-6),
        "train_one_epoch": lambda noise: 0.9 - 0.05 * noise,
    }
    exec(block, names)
    assert len(names["study"].trials) == 8
    assert len(names["sampler"].study.front()) > 1


def test_the_ways_to_publish_of_the_readme(client: dpfront.Client) -> None:
    (block,) = [b for b in BLOCKS if "create_ledger" in b]

    def study(**fields: Any) -> dpfront.Study:
        made = make_study(client, **fields)
        made.optimize(lambda trial: 0.25)
        return made

    client.create_ledger("people", records=10_000, epsilon=2, delta=1e-6)
    client.create_ledger("others", records=10_000, epsilon=2, delta=1e-4)
    client.create_ledger("training", records=30_000, epsilon=1e6, delta=1e-4)
    names: dict[str, Any] = {
        "dpfront": dpfront,
        "client": client,
        "accuracies": [0.1, 0.9],
        "study": study(algorithm="quasi_random", max_trials=12, test_ledger="people"),
        "private_study": study(
            max_trials=3,
            private_mode=dpfront.PrivateMode(
                test_set_size=10_000, test_epsilon=1, train_epsilon=1000, delta=1e-6
            ),
            test_ledger="others",
            train_ledger="training",
        ),
        "stopping_study": study(
            seed=None,
            random_stopping=dpfront.RandomStopping(
                mean_trials=2,
                eta=0,
                listed=20,
                metric="error",
                test_set_size=10_000,
                test_epsilon=1,
            ),
            test_ledger="others",
            train_ledger="training",
        ),
    }
    exec(block, names)
    assert names["best"].best is not None
    assert names["front"].points
    assert names["chosen"].index in (0, 1)
    assert client.ledger("people").charges == 3
