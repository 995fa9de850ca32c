"""Addresses, tokens and TLS."""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

import dpfront
from dpfront import TLS, Client, Study
from dpfront._connection import connect, is_local

from .conftest import Server, make_study


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("localhost:1", True),
        ("127.0.0.1:8321", True),
        ("127.1.2.3:8321", True),
        ("[::1]:8321", True),
        (":8321", True),
        ("unix:///run/dpareto.sock", True),
        ("dns:///localhost:1", True),
        ("example.org:8321", False),
        ("192.0.2.1:8321", False),
        ("[2001:db8::1]:8321", False),
        ("dns:///example.org:1", False),
        ("xds:///name", False),
    ],
)
def test_what_is_of_this_machine(address: str, local: bool) -> None:
    assert is_local(address) is local


def test_tls_is_for_other_machines() -> None:
    assert connect("localhost:1", None, None, None, False, {}).tls is None
    assert connect("localhost:1", None, None, True, False, {}).tls == TLS()
    assert connect("example.org:1", None, None, None, False, {}).tls == TLS()
    assert connect("example.org:1", None, None, False, False, {}).tls is None
    own = TLS(ca="ca.pem")
    assert connect("localhost:1", None, None, own, False, {}).tls == own


def test_the_environment() -> None:
    environment = {"DPARETO_SERVER": "example.org:7", "DPARETO_TOKEN": "t"}
    found = connect(None, None, None, None, False, environment)
    assert (found.address, found.metadata()) == (
        "example.org:7",
        (("authorization", "Bearer t"),),
    )
    assert "'t'" not in repr(found)
    assert connect(None, None, None, None, False, {}).address == "127.0.0.1:8321"


def test_refused_before_a_call(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not host:port"):
        Client("example.org")
    for url in ("http://localhost:8321", "https://example.org"):
        with pytest.raises(ValueError, match="is a URL: gRPC takes host:port"):
            Client(url)
    with pytest.raises(ValueError, match="plain text"):
        Client("example.org:1", token="t", tls=False)
    with pytest.raises(ValueError, match="plain text"):
        Client("example.org:1", token_file=tmp_path / "t", tls=False)
    Client("example.org:1", token="t", tls=False, token_in_plaintext=True).close()
    for token in ("", "two words", "µ"):
        with pytest.raises(ValueError, match="token: must be printable"):
            Client(token=token)
    with pytest.raises(ValueError, match="exclude each other"):
        Client(token="t", token_file="f")
    with pytest.raises(ValueError, match="timeout"):
        Client(timeout=0)
    with pytest.raises(ValueError, match="patience"):
        Client(patience=-1)


def create_token(binary: str, auth: Path, role: str) -> str:
    command = [binary, "token", "create", "--name", role, "--role", role]
    out = subprocess.run(
        [*command, "--auth-file", str(auth)], capture_output=True, text=True, check=True
    )
    return out.stdout.strip()


def test_tokens(binary: str, tmp_path: Path) -> None:
    auth = tmp_path / "auth.yaml"
    admin = create_token(binary, auth, "admin")
    viewer = create_token(binary, auth, "viewer")
    file = tmp_path / "token"
    file.write_text(f" {viewer}\n", encoding="utf-8-sig")
    with (
        Server(binary, tmp_path / "dpareto.db", "--auth-file", str(auth)) as server,
        Client(server.address, token=admin) as operator,
        Client(server.address, token_file=file) as reader,
        Client(server.address) as nobody,
    ):
        study = make_study(operator)
        assert reader.study(study.id).info().state == "active"
        with pytest.raises(dpfront.PermissionDenied):
            reader.study(study.id).ask()
        with pytest.raises(dpfront.Unauthenticated):
            nobody.study(study.id)
        file.write_text(admin)  # it is read again for every call
        reader.study(study.id).ask()


def test_a_file_that_is_no_token_is_not_shown(
    shared_server: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret-1\ns3cret-2\n")
    with Client(shared_server.address, token_file=file) as client:
        with pytest.raises(ValueError, match=r"token_file .*: does not hold one token") as error:
            client.server_version()
        assert "s3cret" not in str(error.value) + repr(client)
    assert "s3cret" not in "".join(capfd.readouterr())


def test_a_heartbeat_outlives_a_missing_token_file(shared_server: Server, tmp_path: Path) -> None:
    """Files of tokens are replaced now and then."""
    file = tmp_path / "token"
    file.write_text("anything")
    with Client(shared_server.address, token_file=file) as client:
        study = make_study(client, lease=timedelta(seconds=1))
        with study.trial() as trial:
            file.unlink()
            time.sleep(0.5)
            file.write_text("anything")
            time.sleep(1.5)
            trial.tell(error=0.5)
        assert study.get_trial(trial.number).attempt == 1


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is missing")
def test_tls(binary: str, tmp_path: Path) -> None:
    key, certificate = tmp_path / "tls.key", tmp_path / "tls.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=dpareto",
         "-addext", "subjectAltName=DNS:dpareto.example"],
        check=True, capture_output=True,
    )  # fmt: skip
    arguments = ["--tls-cert", str(certificate), "--tls-key", str(key)]
    good = TLS(ca=certificate, server_name="dpareto.example")
    with Server(binary, tmp_path / "dpareto.db", *arguments) as server:
        with Client(server.address, tls=good) as client:
            study = make_study(client)
            assert study.info().state == "active"
        for tls in (TLS(ca=certificate), TLS(server_name="dpareto.example"), False):
            with (
                Client(server.address, tls=tls, patience=0) as client,
                pytest.raises(dpfront.Unavailable),
            ):
                client.server_version()


def _tell(study: Study, number: int) -> None:
    trial = study.ask()
    trial.tell(error=1 / number)
    study._transport.close()


def test_processes(shared_server: Server) -> None:
    """A study goes to spawned processes, with a client that connects there."""
    with Client(shared_server.address) as client:
        study = make_study(client)
        context = multiprocessing.get_context("spawn")
        processes = [context.Process(target=_tell, args=(study, k)) for k in (1, 2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
            assert process.exitcode == 0
            process.close()
        assert sorted(t.metrics["error"] for t in study.trials()) == [0.5, 1]


FORK = """
import os, sys, dpfront
client = dpfront.Client(sys.argv[1])  # has not connected yet
child = os.fork()
study = client.study(sys.argv[2])
study.ask().tell(error=0.5)
client.close()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_forks(shared_server: Server) -> None:
    with Client(shared_server.address) as client:
        study = make_study(client)
        subprocess.run(
            [sys.executable, "-c", FORK, shared_server.address, study.id], check=True, timeout=60
        )
        assert study.info().trial_counts["succeeded"] == 2
