"""Generates the messages and stubs of the package from the contract, and its blocking client.

    python tools/generate.py [FOLDER]

writes dpfront/v1, dpfront/_details and dpfront/_sync into FOLDER, by default src. The blocking
client is the one for asyncio (dpfront/_async) without its async and await.

The contract's package is
dpareto.v1; that name belongs to another distribution on the Python Package Index, so that the
modules have ours. It takes the extra "dev" of the package, whose grpcio-tools decides which
runtimes can load the result: protobuf of the version that it carries, or a later one up to the
end of the next major version, and grpcio from its own version on.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib import resources
from pathlib import Path

import unasync

HERE = Path(__file__).resolve().parent.parent
CONTRACT = HERE.parent.parent / "proto"
OWN = HERE / "proto"

# protoc names modules after the package of the contract, here and in the name of each module.
MODULE = re.compile(r"(^from |, ')dpareto\.(?=v1|_details)", re.MULTILINE)

# Names and words of the client for asyncio, and their replacements in the blocking client.
NAMES = ("Client", "Connection", "Search", "Study", "StudyReader", "Trial")
TOKENS = {"_async": "_sync", "_tasks": "_threads", **{f"Async{name}": name for name in NAMES}}
WORDS = [
    (re.compile(r"\b(async|await) "), ""),  # of docstrings: unasync has removed the others
    (re.compile(rf"\bAsync({'|'.join(NAMES)})\b"), r"\1"),
    (re.compile(r"\bAwaitable\[(\w+)\]"), r"\1"),
    (re.compile(r"(\bCallable\S+ \w+\]) \| \1"), r"\1"),  # of a union that has become one type
]
NOTICE = "# Generated from _async by make generate-python. Do not edit.\n\n"


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
    package = target / "dpfront"
    for folder in ("v1", "_details"):
        shutil.rmtree(package / folder, ignore_errors=True)
    package.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        out = Path(work)
        for root, folder in ((CONTRACT, "v1"), (OWN, "_details")):
            files = sorted((root / "dpareto" / folder).glob("*.proto"))
            protoc(root, files, f"--python_out={out}", f"--pyi_out={out}")
            services = [f for f in files if f.stem.endswith("_service")]
            if services:
                protoc(root, services, f"--grpc_python_out={out}", f"--mypy_grpc_out=quiet:{out}")
        for file in (out / "dpareto").glob("*/*.py*"):
            file.write_text(MODULE.sub(r"\1dpfront.", file.read_text()))
        for folder, what in (
            ("v1", "The generated messages and stubs of the contract."),
            ("_details", "The generated messages of errors."),
        ):
            shutil.copytree(out / "dpareto" / folder, package / folder)
            (package / folder / "__init__.py").write_text(f'"""{what}"""\n')
    blocking(package / "_sync")


def blocking(target: Path) -> None:
    """Writes the blocking client."""
    ruff = [str(Path(sysconfig.get_path("scripts")) / "ruff")]
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "_async"
        shutil.copytree(HERE / "src" / "dpfront" / "_async", source)
        files = sorted(source.glob("*.py"))
        unasync.unasync_files(
            [str(f) for f in files], [unasync.Rule("/_async/", "/_sync/", TOKENS)]
        )
        target.mkdir(parents=True)
        for file in files:
            text = (source.parent / "_sync" / file.name).read_text()
            for pattern, replacement in WORDS:
                text = pattern.sub(replacement, text)
            (target / file.name).write_text(NOTICE + text)
    options = ["--quiet", "--config", str(HERE / "pyproject.toml"), "--no-cache", str(target)]
    subprocess.run([*ruff, "check", "--fix-only", "--select", "F401,I", *options], check=True)
    subprocess.run([*ruff, "format", *options], check=True)


if __name__ == "__main__":
    generate(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE / "src")
