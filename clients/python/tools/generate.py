"""Generates the messages and stubs of the package from the contract.

    python tools/generate.py [FOLDER]

writes dpareto/v1 and dpareto/_details into FOLDER, by default src. It takes the extra "dev"
of the package, whose grpcio-tools decides which runtimes can load the result: protobuf of the
version that it carries, or a later one up to the end of the next major version, and grpcio
from its own version on.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from importlib import resources
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
CONTRACT = HERE.parent.parent / "proto"
OWN = HERE / "proto"


def protoc(root: Path, files: list[Path], *options: str) -> None:
    """Runs the protocol compiler of grpcio-tools on files below root."""
    plugin = Path(sysconfig.get_path("scripts")) / "protoc-gen-mypy_grpc"
    command = [
        sys.executable, "-m", "grpc_tools.protoc",
        f"--plugin=protoc-gen-mypy_grpc={plugin}",
        f"-I{root}", f"-I{resources.files('grpc_tools') / '_proto'}",
        *options, *(str(f.relative_to(root)) for f in files),
    ]  # fmt: skip
    subprocess.run(command, check=True, cwd=root, stderr=subprocess.DEVNULL)


def generate(target: Path) -> None:
    """Writes all generated packages below target."""
    for package in ("v1", "_details"):
        shutil.rmtree(target / "dpareto" / package, ignore_errors=True)
    target.mkdir(parents=True, exist_ok=True)
    for root, package in ((CONTRACT, "dpareto/v1"), (OWN, "dpareto/_details")):
        files = sorted((root / package).glob("*.proto"))
        protoc(root, files, f"--python_out={target}", f"--pyi_out={target}")
        services = [f for f in files if f.stem.endswith("_service")]
        if services:
            protoc(root, services, f"--grpc_python_out={target}", f"--mypy_grpc_out=quiet:{target}")
    for package, what in (
        ("v1", "The generated messages and stubs of the contract."),
        ("_details", "The generated messages of errors."),
    ):
        (target / "dpareto" / package / "__init__.py").write_text(f'"""{what}"""\n')


if __name__ == "__main__":
    generate(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE / "src")
