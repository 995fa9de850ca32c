"""Runs the tests under every Python that is found, with older and newer packages.

Each Python gets a virtual environment with the wheel of this platform (`make test-pythons`
builds it), in .bin/pythons. Pythons are those in PATH and of pyenv.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

REPOSITORY = Path(__file__).resolve().parents[3]
PACKAGE = REPOSITORY / "clients" / "python"
PANDAS_2, PANDAS_3 = "pandas>=2,<3", "pandas>=3"
OPTUNA_4, OPTUNA_5 = "optuna>=4,<5", "optuna>=5,<6"
OTHERS = {
    "3.10": [PANDAS_2, "optuna>=4,<4.1"],
    "3.11": [PANDAS_2, OPTUNA_4],
    "3.12": [PANDAS_3, OPTUNA_4],
    "3.13": [PANDAS_3, OPTUNA_5],
    "3.14": [PANDAS_3, OPTUNA_5],
}
TOOLS = ["pytest", "pyyaml", "scikit-learn"]


def find(version: str) -> str | None:
    """Returns a Python of a version that works."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = [str(p / "bin" / "python") for p in sorted(pyenv.glob(version + ".*"), reverse=True)]
    for program in [*found, shutil.which(f"python{version}")]:
        if (
            program
            and not subprocess.run([program, "-c", "import venv, ssl"], check=False).returncode
        ):
            return program
    return None


def test(version: str, python: str, wheel: Path) -> str:
    """Runs the tests, and returns a line about them."""
    folder = REPOSITORY / ".bin" / "pythons" / version
    program = folder / "bin" / "python"
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    install = [str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    extras = f"dpfront[matplotlib,optuna,pandas,plotly] @ {wheel.as_uri()}"
    subprocess.run([*install, extras, *OTHERS[version], *TOOLS], check=True)
    show = "import pandas, optuna; print(pandas.__version__, optuna.__version__)"
    names = subprocess.run([program, "-c", show], check=True, capture_output=True, text=True).stdout
    began = time.monotonic()
    tested = subprocess.run(
        [program, "-m", "pytest", "-q", "-p", "no:cacheprovider", *sys.argv[1:]],
        cwd=PACKAGE,
        env={**os.environ, "DPARETO_BINARY": str(REPOSITORY / ".bin" / "dpareto")},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = tested.stdout.splitlines() or ["no output"]
    print("\n".join(lines[-40:]), flush=True)
    line = "Python {} | pandas {} | Optuna {} | ".format(version, *names.split())
    return f"{line}{lines[-1]} | exit {tested.returncode}, {time.monotonic() - began:.0f} s"


def main() -> int:
    """Tests under each Python, and prints a table; 1 if any test fails."""
    wheels = (REPOSITORY / ".bin" / "wheels").glob("*.whl")
    (wheel,) = (w for w in wheels if parse_wheel_filename(w.name)[3].intersection(sys_tags()))
    report = []
    for version in OTHERS:
        python = find(version)
        report.append(test(version, python, wheel) if python else f"Python {version} | not found")
    print("\n".join(["", *report]))
    return int(any("exit" in line and "exit 0" not in line for line in report))


if __name__ == "__main__":
    sys.exit(main())
