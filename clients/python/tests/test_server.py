"""A server of one's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import dpareto
from dpareto.server import find_binary

from .conftest import make_study


def test_it_serves_and_keeps_its_store(binary: str, tmp_path: Path) -> None:
    store = tmp_path / "studies.db"
    with dpareto.local_server(store, binary=binary) as server:
        study = make_study(server.client())
        study.ask().tell(error=0.5)
    with dpareto.local_server(store, binary=binary) as server:
        assert server.client().study(study.id).info().trial_counts["succeeded"] == 1
        assert "msg=serving" in server.log
    assert "(stopped)" in repr(server)
    server.stop()
    with pytest.raises(dpareto.DParetoError, match="stopped"), server:
        pass


def test_a_temporary_store_goes_with_it(binary: str) -> None:
    server = dpareto.local_server(binary=binary)
    assert server._folder is not None
    folder = Path(server._folder.name)
    assert (folder / "dpareto.db").exists()
    server.stop()
    assert not folder.exists()


def test_why_it_does_not_start(binary: str, tmp_path: Path) -> None:
    store = tmp_path / "studies.db"
    store.write_text("this is not a store")
    with pytest.raises(dpareto.ServerError, match=r"the server ended: .*studies\.db"):
        dpareto.local_server(store, binary=binary)


def test_where_it_is_found(binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPARETO_BINARY", binary)
    assert find_binary() == binary
    with pytest.raises(dpareto.ServerError, match="nowhere is not a program"):
        find_binary(tmp_path / "nowhere")
    monkeypatch.delenv("DPARETO_BINARY")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(dpareto.ServerError, match="no dpareto in PATH"):
        find_binary()
    (tmp_path / "dpareto").symlink_to(binary)
    assert find_binary() == str(tmp_path / "dpareto")


PROGRAM = textwrap.dedent("""
    import sys, time, dpareto
    server = dpareto.local_server(binary=sys.argv[1])
    print(server.address, flush=True)
    if sys.argv[2] == "wait":
        time.sleep(60)
""")


@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9")
@pytest.mark.parametrize("end", ["itself", "kill"])
def test_no_server_is_left_behind(binary: str, end: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, binary, "wait" if end == "kill" else "end"],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    address = process.stdout.readline().decode().strip()
    if end == "kill":
        with dpareto.Client(address) as client:
            client.server_version()  # it serves
        process.send_signal(signal.SIGKILL)
    process.wait(20)
    process.stdout.close()
    limit = time.monotonic() + 20
    while True:
        try:
            with dpareto.Client(address, patience=0) as client:
                client.server_version()
        except dpareto.Unavailable:
            break
        assert time.monotonic() < limit
        time.sleep(0.05)
