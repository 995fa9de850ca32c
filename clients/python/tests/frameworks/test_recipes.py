"""The recipes of examples/frameworks, as they stand, with two trials of each."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "frameworks"
# The extra that each needs, and a package of it.
RECIPES = {
    "lightning_mlp": ("lightning", "lightning"),
    "huggingface_classifier": ("huggingface", "transformers"),
    "cnn": ("opacus", "opacus"),
    "ghost_clipping": ("opacus", "opacus"),
    "lora": ("opacus", "opacus"),
    "jax_mlp": ("jax", "optax"),
    "keras_mlp": ("keras", "keras"),
    "opake_mlp": ("opake", "opake"),
    "dpsearch": ("sklearn", "diffprivlib"),
    "federated": ("flower", "flwr"),
    "synthetic_data": ("synthetic", "snsynth"),
}
NUMPY_ALONE = ["fairness", "small_epsilon", "three_objectives"]


def test_all_recipes_are_short_and_listed() -> None:
    found = {path.stem: path.read_text() for path in FOLDER.glob("*.py")}
    assert set(found) == {*RECIPES, *NUMPY_ALONE, "recipe"}
    assert {name for name, text in found.items() if text.count("\n") > 60} == {"recipe"}


@pytest.mark.frameworks
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{RECIPES[recipe][0]}-{recipe}")
def test_recipes(recipe: str, binary: str, tmp_path: Path) -> None:
    pytest.importorskip(RECIPES[recipe][1])
    run(recipe, binary, tmp_path)


@pytest.mark.parametrize("recipe", NUMPY_ALONE)
def test_recipes_of_numpy_alone(recipe: str, binary: str, tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    front = run(recipe, binary, tmp_path)
    header = next(line.split() for line in front.splitlines() if line.startswith("accuracy"))
    assert (
        header[: header.index("epsilon")]
        == {
            "fairness": ["accuracy", "gap"],
            "small_epsilon": ["accuracy"],
            "three_objectives": ["accuracy", "seconds"],
        }[recipe]
    )


def run(recipe: str, binary: str, folder: Path) -> str:
    process = subprocess.run(
        [sys.executable, "-W", "ignore", FOLDER / f"{recipe}.py", "2"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "DPARETO_BINARY": binary},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "epsilon" in process.stdout or "ε" in process.stdout
    if importlib.util.find_spec("matplotlib"):
        assert (folder / f"{recipe}.png").stat().st_size > 5000
    return process.stdout
