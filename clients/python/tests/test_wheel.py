"""The package as users install it. `make test-wheel` and `make wheels` build what is tested."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from .conftest import REPOSITORY
from .test_documents import BLOCKS

FOLDER = Path(os.environ.get("DPFRONT_WHEELS", "nowhere"))
VERSION = (REPOSITORY / "cmd" / "internal" / "command" / "VERSION").read_text().strip()
WHEELS = sorted(FOLDER.glob(f"dpfront-{VERSION}-*.whl"))

needs_wheels = pytest.mark.skipif(not WHEELS, reason="make test-wheel builds wheels")
needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go")


def platform(wheel: Path) -> str:
    return wheel.stem.split("-py3-none-")[1]


def program(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    (found,) = [f for f in archive.infolist() if f.filename.startswith("dpfront/_bin/")]
    return found


def kind(head: bytes) -> str:
    """The format and processor of a program, from its first bytes."""
    if head[:5] == b"\x7fELF\x02":
        return "ELF " + {62: "x86_64", 183: "aarch64"}[int.from_bytes(head[18:20], "little")]
    if head[:4] == b"\xcf\xfa\xed\xfe":
        kinds = {0x01000007: "x86_64", 0x0100000C: "arm64"}
        return "Mach-O " + kinds[int.from_bytes(head[4:8], "little")]
    if head[:2] == b"MZ":
        at = int.from_bytes(head[60:64], "little")
        assert head[at : at + 4] == b"PE\0\0"
        return "PE " + {0x8664: "amd64"}[int.from_bytes(head[at + 4 : at + 6], "little")]
    return "unknown"


FORMATS = {"manylinux": "ELF", "macosx": "Mach-O", "win": "PE"}


@needs_wheels
@pytest.mark.parametrize("wheel", WHEELS, ids=platform)
def test_inspect(wheel: Path) -> None:
    """What a wheel says about itself is so. Those of other platforms are not run."""
    with zipfile.ZipFile(wheel) as archive:
        info = f"dpfront-{VERSION}.dist-info"
        rows = csv.reader(io.StringIO(archive.read(f"{info}/RECORD").decode()))
        recorded = {name: digest for name, digest, _ in rows}
        assert sorted(recorded) == sorted(archive.namelist())
        assert recorded.pop(f"{info}/RECORD") == ""
        for name, digest in recorded.items():
            found = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest())
            assert digest == "sha256=" + found.decode().rstrip("=")

        tags = re.findall(r"^Tag: (.*)$", archive.read(f"{info}/WHEEL").decode(), re.MULTILINE)
        assert sorted(tags) == sorted(f"py3-none-{p}" for p in platform(wheel).split("."))
        assert b"Root-Is-Purelib: false" in archive.read(f"{info}/WHEEL")
        assert f"\nVersion: {VERSION}\n" in archive.read(f"{info}/METADATA").decode()
        assert archive.read(f"{info}/licenses/LICENSE") == (REPOSITORY / "LICENSE").read_bytes()

        inside = program(archive)
        assert inside.external_attr >> 16 & 0o777 == 0o755
        form, processor = kind(archive.read(inside)[:4096]).split()
        assert platform(wheel).startswith(next(k for k, v in FORMATS.items() if v == form))
        assert all(tag.endswith(processor) for tag in tags)
        packed, full = wheel.stat().st_size / 1e6, inside.file_size / 1e6
        print(f"\n{wheel.name}: {packed:.1f} MB; {form} {processor}, {full:.1f} MB unpacked")


@needs_go
@needs_wheels
@pytest.mark.parametrize("wheel", WHEELS, ids=platform)
def test_inspect_notices(wheel: Path, tmp_path: Path) -> None:
    """The terms of every module that the program was built from are there."""
    with zipfile.ZipFile(wheel) as archive:
        path = archive.extract(program(archive), tmp_path)
        notices = archive.read(f"dpfront-{VERSION}.dist-info/licenses/THIRD_PARTY_NOTICES.txt")
    listed = subprocess.run(
        ["go", "version", "-m", path], capture_output=True, text=True, check=True
    ).stdout
    modules = re.findall(r"^\t(?:dep|=>)\t(\S+)\t(\S+)", listed, re.MULTILINE)
    assert len(modules) > 20
    named = re.findall(r"^={80}\n(\S+) (\S+): ", notices.decode(), re.MULTILINE)
    assert ("Go", listed.split()[1]) in named
    assert not [m for m in modules if m not in named]
    assert re.search(r"^={80}\nhtmx\.org ", notices.decode(), re.MULTILINE)
    assert not re.search(r"^\tbuild\tCGO_ENABLED=1", listed, re.MULTILINE)


def make_wheel(folder: Path, **variables: str) -> Path:
    """Copies the sources to a folder, and makes a wheel there."""
    version = folder / "cmd" / "internal" / "command" / "VERSION"
    version.parent.mkdir(parents=True)
    shutil.copy(REPOSITORY / "cmd" / "internal" / "command" / "VERSION", version)
    sources = folder / "clients" / "python"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
    shutil.copytree(REPOSITORY / "clients" / "python", sources, ignore=ignored)
    for path in sources.rglob("*"):
        os.utime(path, (time.time(), time.time()))
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--no-index", "-w", folder, sources],
        env={**os.environ, **variables},
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture
def payload(tmp_path: Path) -> dict[str, str]:
    """Something in place of the program."""
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "dpareto").write_bytes(b"\x7fELF" + bytes(range(256)) * 100)
    (folder / "dpareto").chmod(0o700)
    (folder / "THIRD_PARTY_NOTICES.txt").write_text("thanks\n")
    return {"DPFRONT_PROGRAM": str(folder), "DPFRONT_PLATFORM": "win_amd64"}


def test_the_same_sources_give_the_same_bytes(tmp_path: Path, payload: dict[str, str]) -> None:
    pytest.importorskip("hatchling")
    one = make_wheel(tmp_path / "one", **payload)
    two = make_wheel(tmp_path / "another" / "folder", **payload)
    assert one.name == two.name == f"dpfront-{VERSION}-py3-none-win_amd64.whl"
    assert one.read_bytes() == two.read_bytes()
    (tmp_path / "program" / "dpareto").write_bytes(b"another")
    assert make_wheel(tmp_path / "three", **payload).read_bytes() != one.read_bytes()


def test_a_wheel_without_the_program(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    wheel = make_wheel(tmp_path / "pure", DPFRONT_PROGRAM="")
    assert wheel.name == f"dpfront-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        assert not [f for f in archive.namelist() if "_bin" in f or "NOTICES" in f]


class Installation:
    """A virtual environment whose programs see none of our environment variables."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self._variables = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
        for name in ("PIP_INDEX_URL", "PIP_CERT", "SSL_CERT_FILE", "https_proxy", "HTTPS_PROXY"):
            if name in os.environ:  # how the index is reached
                self._variables[name] = os.environ[name]
        self.run(python, "-m", "venv", str(folder / "venv"))

    def run(self, program: str, *arguments: str) -> str:
        process = subprocess.run(
            [program, *arguments],
            cwd=self.folder,
            env=self._variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        return process.stdout

    def in_it(self, program: str, *arguments: str) -> str:
        return self.run(str(self.folder / "venv" / "bin" / program), *arguments)

    def install(self, *arguments: str) -> None:
        self.in_it("pip", "install", "--quiet", "--disable-pip-version-check", *arguments)

    def first_example(self) -> None:
        (self.folder / "first.py").write_text(BLOCKS[0])
        out = self.in_it("python", "first.py")
        assert "'noise_multiplier': " in out.splitlines()[-1]

    def state(self) -> str:
        """The digests of our files."""
        (package,) = self.folder.glob("venv/lib/python*/site-packages/dpfront")
        files = sorted(f for f in package.rglob("*") if f.is_file() and f.suffix != ".pyc")
        digests = [(str(f), hashlib.sha256(f.read_bytes()).hexdigest()) for f in files]
        assert len(digests) > 40
        return repr(digests)


HERE = [w for w in WHEELS if parse_wheel_filename(w.name)[3].intersection(sys_tags())]
PYTHONS = os.environ.get("DPFRONT_PYTHONS", sys.executable).split(os.pathsep)


@pytest.mark.skipif(not HERE, reason="there is no wheel for this platform; needs the network")
@pytest.mark.parametrize("python", PYTHONS)
def test_from_nothing_to_a_front(python: str, tmp_path: Path) -> None:
    began = time.monotonic()
    user = Installation(tmp_path, python)
    user.install(str(HERE[0]))
    installed = time.monotonic()
    user.first_example()
    done = time.monotonic()
    which = user.in_it("python", "--version").strip()
    print(f"\n{which}: {installed - began:.1f} s to install, {done - installed:.1f} s to run")

    out = user.in_it("dpfront", "version")
    assert out.startswith(f"dpareto {VERSION}")
    assert user.in_it("python", "-m", "dpfront", "version") == out
    assert (
        user.in_it("python", "-c", "import dpfront; print(dpfront.__version__)").strip() == VERSION
    )

    before = user.state()
    user.install("--upgrade", "--find-links", str(FOLDER), "dpfront")
    user.install("--no-deps", "dpareto")  # the package of others with this name
    assert user.state() == before
    user.first_example()
