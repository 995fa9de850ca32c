"""Statements to sign. The program writes them, with the credentials of the reader."""

from __future__ import annotations

import os
import subprocess

from dpfront import _convert as convert
from dpfront import errors
from dpfront._connection import Connection
from dpfront._program import find_binary


def write(
    connection: Connection,
    study: str,
    epsilon: float | None,
    trial: int | None,
    sampler: str,
    price: bool,
    output: str,
) -> str:
    """Returns a statement. The token goes by the environment: others can read arguments."""
    command = [find_binary(), "statement", study, "--output", output, *_connected(connection)]
    if epsilon is not None:
        command += ["--epsilon", repr(convert.number("epsilon", epsilon))]
    if trial is not None:
        command += ["--trial", str(trial)]
    if sampler:
        command += ["--sampler", sampler]
    if not price:
        command.append("--price=false")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DPARETO_")}
    if connection.token:
        environment["DPARETO_TOKEN"] = connection.token
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        raise errors.DParetoError(done.stderr.strip().removeprefix("dpareto: "))
    return done.stdout


def _connected(c: Connection) -> list[str]:
    """Returns the flags of a connection."""
    flags = ["--server", c.address]
    if c.token_file is not None:
        flags += ["--token-file", c.token_file]
    if c.tls is None:
        return flags if c.local else [*flags, "--plaintext", "--plaintext-token"]
    if c.local:
        flags.append("--tls")
    for name, value in (
        ("--tls-ca", c.tls.ca),
        ("--client-cert", c.tls.certificate),
        ("--client-key", c.tls.key),
        ("--tls-server-name", c.tls.server_name),
    ):
        if value is not None:
            flags += [name, os.fspath(value)]
    return flags
