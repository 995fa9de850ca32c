"""A server of one's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
from pathlib import Path

import pytest

import dpfront
from dpfront._program import find_binary

from .conftest import make_study


def test_it_serves_and_keeps_its_store(binary: str, tmp_path: Path) -> None:
    store = tmp_path / "studies.db"
    with dpfront.local_server(store, binary=binary) as server:
        study = make_study(server.client())
        study.ask().tell(error=0.5)
    with dpfront.local_server(store, binary=binary) as server:
        assert server.client().study(study.id).info().trial_counts["succeeded"] == 1
        assert "msg=serving" in server.log
    assert "(stopped)" in repr(server)
    server.stop()
    with pytest.raises(dpfront.DParetoError, match="stopped"), server:
        pass


def test_it_has_a_page(binary: str) -> None:
    """Servers do not share a port, and their clients know the page without a call."""
    with (
        dpfront.local_server(binary=binary) as one,
        dpfront.local_server(binary=binary) as other,
    ):
        pages = set()
        for server in (one, other):
            client = server.client()
            study = make_study(client)
            page = server.page_url
            assert page is not None
            assert f'href="{page}studies/{study.id}"' in study._repr_html_()
            assert client.page_url() == page
            assert study.page_url() == f"{page}studies/{study.id}"
            with urllib.request.urlopen(f"{page}v1/{study.name}") as answer:
                assert json.load(answer)["study"]["name"] == study.name
            pages.add(page)
        assert len(pages) == 2


def test_a_temporary_store_goes_with_it(binary: str) -> None:
    server = dpfront.local_server(binary=binary)
    assert server._folder is not None
    folder = server._folder
    assert (folder / "dpareto.db").exists()
    server.stop()
    assert not folder.exists()


def test_why_it_does_not_start(binary: str, tmp_path: Path) -> None:
    store = tmp_path / "studies.db"
    store.write_text("this is not a store")
    with pytest.raises(dpfront.ServerError, match=r"the server ended: .*studies\.db") as error:
        dpfront.local_server(store, binary=binary)
    assert "Fatal Python error" not in str(error.value)


def test_a_store_has_one_server(binary: str, tmp_path: Path) -> None:
    """A cell that runs twice starts a second one."""
    store = tmp_path / "studies.db"
    with dpfront.local_server(store, binary=binary) as server:
        with pytest.raises(dpfront.ServerError, match=r"in use by [^$]* stop\(\) it$") as raised:
            dpfront.local_server(store, binary=binary)
        assert "--create" not in str(raised.value)
        assert server.client().studies() == []


def test_its_death_is_told_at_once(binary: str) -> None:
    with dpfront.local_server(binary=binary) as server:
        study = make_study(server.client())
        server._keeper.terminate()
        server._keeper.wait()
        with pytest.raises(dpfront.ServerError, match=r"the server ended: .*msg=serving"):
            study.ask()
        with pytest.raises(dpfront.ServerError, match="the server ended"):
            server.client()


def test_no_client_of_a_server_that_is_stopped(binary: str) -> None:
    server = dpfront.local_server(binary=binary)
    server.stop()
    with pytest.raises(dpfront.ServerError, match="is stopped"):
        server.client()


FORKS = textwrap.dedent("""
    import os, sys, time, dpfront
    server = dpfront.local_server(binary=sys.argv[1])
    if os.fork() == 0:
        sys.exit()  # runs what is to be done at exit
    os.wait()
    client = server.client()
    study = dpfront.Study.create(
        client, "forks", [dpfront.Int("n", 1, 9)], [dpfront.Minimize("error", 1)]
    )
    study.ask().tell(error=0.5)
    folder = server._folder
    assert folder.exists()
    child = os.fork()
    if child == 0:
        time.sleep(60)  # and holds on to what it got from its parent
    server.stop()
    assert not folder.exists()
    try:
        dpfront.Client(server.address, patience=0).server_version()
    except dpfront.Unavailable:
        print("gone")
    os.kill(child, 9)
    os.wait()
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_children_neither_end_it_nor_keep_it(binary: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", FORKS, binary],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (process.stdout, process.returncode) == ("gone\n", 0), process.stderr


def test_where_it_is_found(binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPARETO_BINARY", binary)
    assert find_binary() == binary
    with pytest.raises(dpfront.ServerError, match="nowhere is not a program"):
        find_binary(tmp_path / "nowhere")
    monkeypatch.delenv("DPARETO_BINARY")
    monkeypatch.setenv("PATH", str(tmp_path))
    bundled = tmp_path / "_bin" / "dpareto"
    monkeypatch.setattr(dpfront._program, "_BUNDLED", bundled)
    with pytest.raises(dpfront.ServerError, match="no dpareto in PATH, and dpfront was installed"):
        find_binary()
    (tmp_path / "dpareto").symlink_to(binary)
    assert find_binary() == str(tmp_path / "dpareto")
    bundled.parent.mkdir()
    bundled.symlink_to(binary)
    assert find_binary() == str(bundled)  # rather than one in PATH, of whatever version
    assert find_binary(tmp_path / "dpareto") == str(tmp_path / "dpareto")
    monkeypatch.setenv("DPARETO_BINARY", binary)
    assert find_binary() == binary


def command(*arguments: str, **variables: str) -> tuple[int, str, str]:
    process = subprocess.run(
        [sys.executable, "-m", "dpfront", *arguments],
        env={"PYTHONPATH": os.pathsep.join(sys.path), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr


def test_the_command_is_the_program(binary: str) -> None:
    status, out, _ = command("version", DPARETO_BINARY=binary)
    assert (status, out.split()[0]) == (0, "dpareto")
    status, out, err = command("study", "delete", DPARETO_BINARY=binary)  # lacks an argument
    assert (status, out) == (2, "")
    assert "usage: dpareto study delete" in err


def test_the_command_without_the_program(tmp_path: Path) -> None:
    status, out, err = command("version", DPARETO_BINARY=str(tmp_path / "nowhere"))
    assert (status, out) == (1, "")
    assert err.startswith("dpfront: ")
    assert "is not a program" in err
    if not dpfront._program._BUNDLED.exists():
        status, out, err = command("version", PATH=str(tmp_path))
        assert (status, out) == (1, "")
        assert "Install one of them, or build the program with `make build`" in err


@pytest.mark.skipif(os.name == "nt", reason="Windows replaces no process")
def test_signals_reach_the_program(binary: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "dpfront", "serve", "--create"],
        env={
            **os.environ,
            "DPARETO_BINARY": binary,
            "DPARETO_LISTEN": "127.0.0.1:0",
            "DPARETO_STORE": str(tmp_path / "dpareto.db"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"listening on ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


PROGRAM = textwrap.dedent("""
    import sys, time, dpfront
    server = dpfront.local_server(binary=sys.argv[1])
    print(server.address, server._folder, flush=True)
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
    address, folder = process.stdout.readline().decode().split()
    if end == "kill":
        with dpfront.Client(address) as client:
            client.server_version()  # it serves
        process.send_signal(signal.SIGKILL)
    process.wait(20)
    process.stdout.close()
    limit = time.monotonic() + 20
    while True:
        try:
            with dpfront.Client(address, patience=0) as client:
                client.server_version()
        except dpfront.Unavailable:
            break
        assert time.monotonic() < limit
        time.sleep(0.05)
    while Path(folder).exists():
        assert time.monotonic() < limit
        time.sleep(0.05)
