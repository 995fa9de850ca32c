"""Statements to sign."""

from __future__ import annotations

import json

import pytest

from dpfront import TLS, Client
from dpfront._connection import connect
from dpfront._statement import _connected
from dpfront.errors import DParetoError

from .conftest import make_study


def test_a_statement(client: Client, binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPARETO_BINARY", binary)
    study = make_study(client, max_trials=2)
    study.optimize(lambda trial: 0.25)
    epsilon = study.trials()[0].metrics["epsilon"]
    text = study.statement(trial=1, sampler="fixed-size", price=False)
    assert "sampler, checked by the client" in text
    made = json.loads(study.statement(trial=1, sampler="fixed-size", price=False, output="json"))
    assert made["guarantee"]["epsilon"] == epsilon
    assert made["assumptions"][0]["premise"] == "sampler"
    html = study.statement(epsilon=epsilon, sampler="fixed-size", output="html")
    assert html.startswith("<!doctype html>")
    with pytest.raises(DParetoError, match="no statement: the sampler of the trainer is unknown"):
        study.statement(trial=1)


def test_the_flags_of_a_connection() -> None:
    here = connect(None, "t", None, None, False, {})
    assert _connected(here) == ["--server", here.address]  # the token is no argument
    tls = TLS(ca="ca.pem", certificate="c.pem", key="k.pem", server_name="n")
    flags = _connected(connect("example.org:1", None, "token", tls, False, {}))
    assert flags == [
        "--server", "example.org:1", "--token-file", "token", "--tls-ca", "ca.pem",
        "--client-cert", "c.pem", "--client-key", "k.pem", "--tls-server-name", "n",
    ]  # fmt: skip
    assert "--tls" in _connected(connect("localhost:1", None, None, True, False, {}))
    assert "--plaintext" in _connected(connect("example.org:1", None, None, False, False, {}))
