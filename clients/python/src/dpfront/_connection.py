"""Connections to a server: addresses, TLS, tokens, and the meaning of failed attempts."""

from __future__ import annotations

import ipaddress
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from dpfront._details import status_pb2
from dpfront.errors import FieldViolation

DEFAULT_ADDRESS = "127.0.0.1:8321"

OPTIONS: list[tuple[str, int]] = [
    # Find a restarted server within about a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.min_reconnect_backoff_ms", 5000),
    # Notice a machine that vanished; a server accepts at most two pings in a call.
    ("grpc.keepalive_time_ms", 90_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # A page of trials with all their measurements has no useful upper bound.
    ("grpc.max_receive_message_length", -1),
    # Clients of one process must not wait for each other's connections.
    ("grpc.use_local_subchannel_pool", 1),
]


@dataclass(frozen=True)
class TLS:
    """Options of TLS, by default with the system's authorities and without a certificate.

    All paths are of PEM files, which are read when the client first connects.
    """

    ca: str | os.PathLike[str] | None = None
    """Authorities to trust instead of the system's."""
    certificate: str | os.PathLike[str] | None = None
    """Certificate to show the server."""
    key: str | os.PathLike[str] | None = None
    """Private key of the certificate."""
    server_name: str | None = None
    """Name that the server's certificate must have, if not the host of the address."""


@dataclass(frozen=True)
class Connection:
    """Everything needed to connect; it can be pickled."""

    address: str
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    tls: TLS | None = None
    local: bool = True

    def credentials(self) -> grpc.ChannelCredentials | None:
        """Returns the credentials of a channel, or None for plain text."""
        if self.tls is None:
            return None

        def read(path: str | os.PathLike[str] | None) -> bytes | None:
            return None if path is None else Path(path).read_bytes()

        return grpc.ssl_channel_credentials(
            read(self.tls.ca), read(self.tls.key), read(self.tls.certificate)
        )

    def hint(self) -> str:
        """Returns advice for when no server was ever reached."""
        how = "in plain text (tls=False)" if self.tls is None else "by TLS (tls=True)"
        return f"is a server running at {self.address}, and to be reached {how}?"

    def options(self) -> list[tuple[str, int | str]]:
        """Returns the options of a channel."""
        options: list[tuple[str, int | str]] = [*OPTIONS]
        if self.local:
            options.append(("grpc.enable_http_proxy", 0))
        if self.tls is not None and self.tls.server_name:
            options.append(("grpc.ssl_target_name_override", self.tls.server_name))
        return options

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Returns the metadata of every call. A token file is read each time."""
        token = self.token
        if self.token_file is not None:
            token = Path(self.token_file).read_text(encoding="utf-8-sig").strip()
            if token and not _is_token(token):
                # gRPC's error would be obscure.
                raise ValueError(f"token_file {self.token_file}: does not hold one token")
        return (("authorization", f"Bearer {token}"),) if token else ()


def connect(
    address: str | None,
    token: str | None,
    token_file: str | os.PathLike[str] | None,
    tls: bool | TLS | None,
    token_in_plaintext: bool,
    environ: Mapping[str, str] = os.environ,
) -> Connection:
    """Returns the connection for the arguments of a client and the environment."""
    if not isinstance(address, (str, type(None))):
        raise TypeError(f"address: {address!r} is not a text")
    address = address or environ.get("DPARETO_SERVER") or DEFAULT_ADDRESS
    local = is_local(address)
    if tls is None:
        tls = not local
    if token is not None and token_file is not None:
        raise ValueError("token and token_file exclude each other")
    if token is None and token_file is None:
        token = environ.get("DPARETO_TOKEN") or None
    if token is not None and not _is_token(token):
        raise ValueError("token: must be printable ASCII without spaces")
    if (token or token_file) and not tls and not local and not token_in_plaintext:
        raise ValueError(
            "the token would go to another machine in plain text, where others can read it; "
            "token_in_plaintext=True allows it"
        )
    return Connection(
        address=address,
        token=token,
        token_file=None if token_file is None else os.fspath(token_file),
        tls=TLS() if tls is True else tls or None,
        local=local,
    )


def _is_token(token: str) -> bool:
    return token.isascii() and token.isprintable() and " " not in token and token != ""


def is_local(address: str) -> bool:
    """Reports whether an address is on this machine."""
    if address.startswith(("http:", "https:")):
        raise ValueError(f"address {address!r}: is a URL: gRPC takes host:port")
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    endpoint = address.rsplit("/", 1)[-1] if "://" in address else address
    host, colon, port = endpoint.rpartition(":")
    if not colon or not port:
        if "://" in address:
            return False
        raise ValueError(f"address {address!r}: is not host:port")
    host = host.strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in ("", "localhost")


@dataclass(eq=False)
class Failure(Exception):
    """One attempt of a call that failed."""

    code: grpc.StatusCode
    message: str
    violations: tuple[FieldViolation, ...] = ()
    retry_delay: float | None = None

    @property
    def transient(self) -> bool:
        """Whether another attempt can succeed.

        The server could not be reached, is stopping (which cancels its calls), lost a race,
        did not answer in time, or is overloaded and says when to retry.
        """
        return self.code in _TRANSIENT or (
            self.code is grpc.StatusCode.RESOURCE_EXHAUSTED and bool(self.retry_delay)
        )


_TRANSIENT = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)


def failure(error: Any) -> Failure:
    """Returns the failure for the error of an attempt: a grpc.RpcError, blocking or not."""
    violations: list[FieldViolation] = []
    delay: float | None = None
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin" or not isinstance(value, bytes):
            continue
        for detail in status_pb2.Status.FromString(value).details:
            kind = detail.type_url.rsplit("/", 1)[-1]
            if kind == "google.rpc.BadRequest":
                bad = status_pb2.BadRequest.FromString(detail.value)
                violations += [FieldViolation(v.field, v.description) for v in bad.field_violations]
            elif kind == "google.rpc.RetryInfo":
                info = status_pb2.RetryInfo.FromString(detail.value)
                delay = info.retry_delay.ToTimedelta().total_seconds()
    return Failure(error.code(), error.details() or "", tuple(violations), delay)


FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0


class Pauses:
    """The pauses between attempts. They double, and half of each is random."""

    def __init__(self) -> None:
        self._pause = FIRST_PAUSE

    def next(self, retry_delay: float | None) -> float:
        """Returns the next pause, at least as long as the server asks."""
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        return (retry_delay or 0) + pause * random.uniform(0.5, 1)
