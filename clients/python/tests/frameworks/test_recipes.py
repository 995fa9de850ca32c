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
    "ghost_clipping": ("opacus", "opacus"),
    "lora": ("opacus", "opacus"),
    "jax_mlp": ("jax", "optax"),
    "keras_mlp": ("keras", "keras"),
    "dpsearch": ("sklearn", "diffprivlib"),
    "federated": ("flower", "flwr"),
    "synthetic_data": ("synthetic", "snsynth"),
}


def test_all_recipes_are_short_and_listed() -> None:
    found = {path.stem: path.read_text() for path in FOLDER.glob("*.py")}
    assert set(found) == {*RECIPES, "recipe"}
    assert {name for name, text in found.items() if text.count("\n") > 60} == set()


@pytest.mark.frameworks
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{RECIPES[recipe][0]}-{recipe}")
def test_recipes(recipe: str, binary: str, tmp_path: Path) -> None:
    pytest.importorskip(RECIPES[recipe][1])
    process = subprocess.run(
        [sys.executable, "-W", "ignore", FOLDER / f"{recipe}.py", "2"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "DPARETO_BINARY": binary},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "epsilon" in process.stdout or "ε" in process.stdout
    if importlib.util.find_spec("matplotlib"):
        assert (tmp_path / f"{recipe}.png").stat().st_size > 5000
