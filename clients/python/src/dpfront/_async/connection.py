"""A connection to a server, which `AsyncClient` uses."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from dpfront import _tasks as runtime
from dpfront._connection import TLS, connect
from dpfront._operations.calls import Operation

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


class AsyncConnection:
    """A connection to a server, with the arguments of `AsyncClient`."""

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        tls: bool | TLS | None = None,
        token_file: str | os.PathLike[str] | None = None,
        token_in_plaintext: bool = False,
        timeout: float = 15.0,
        patience: float = 600.0,
    ) -> None:
        connection = connect(address, token, token_file, tls, token_in_plaintext)
        self._transport = runtime.Transport(connection, timeout, patience)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r})"

    @property
    def address(self) -> str:
        """The address of the server."""
        return self._transport.connection.address

    @property
    def stubs(self) -> runtime.Stubs:
        """The generated stubs."""
        return self._transport.stubs

    @property
    def worker_id(self) -> str:
        """The default worker id of this process, a random one."""
        return self._transport.worker_id

    async def close(self) -> None:
        """Closes the connection. Calls that wait end with an error."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _run(self, operation: Operation[T]) -> T:
        return await self._transport.run(operation)
