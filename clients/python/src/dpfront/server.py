"""A local server, for notebooks, scripts and tests."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from dpfront._program import find_binary
from dpfront._sync.client import Client
from dpfront.errors import DParetoError, ServerError

# Runs the server as its child, and ends it at the first byte on standard input or its end:
# however the process at the other end of the pipe ends, even by kill -9, it leaves no server
# and no temporary folder behind. (Standard input is read without Python's buffer, which must
# not be in use when the interpreter ends.)
_KEEPER = """
import os, shutil, signal, subprocess, sys, threading
folder, command = sys.argv[1], sys.argv[2:]
server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
def watch():
    os.read(0, 1)
    server.terminate()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
signal.signal(signal.SIGTERM, lambda *_: server.terminate())
threading.Thread(target=watch, daemon=True).start()
status = server.wait()
if folder:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(status)
"""

_LISTENING = "listening on "

# Windows has no sessions: a separate console, without a window, keeps Ctrl-C away.
_WITHOUT_CONSOLE: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)


def local_server(
    store: str | os.PathLike[str] | None = None,
    *,
    binary: str | os.PathLike[str] | None = None,
    listen: str = "127.0.0.1:0",
    timeout: float = 30.0,
) -> LocalServer:
    """Starts a server on this machine, and returns when it is ready.

        with dpfront.local_server("studies.db") as server:
            study = server.client().study("svt")

    It ends with the block, with ``stop()``, or with this process, even if that is killed.

    Args:
        store: File with its state, created if absent. By default a temporary one, deleted with
            the server.
        binary: The program ``dpareto``. By default the environment variable DPARETO_BINARY,
            the one that this package brought, or the one in PATH.
        listen: Address to listen on; port 0 takes a free one.
        timeout: How long to wait until it is ready, in seconds.

    Raises:
        ServerError: There is no such program, or it ended; the text has its output.
    """
    return LocalServer(store, binary=binary, listen=listen, timeout=timeout)


class LocalServer:
    """A server that was started by `local_server`."""

    def __init__(
        self,
        store: str | os.PathLike[str] | None,
        *,
        binary: str | os.PathLike[str] | None,
        listen: str,
        timeout: float,
    ) -> None:
        program = find_binary(binary)
        self._folder: Path | None = None  # deleted by the keeper
        if store is None:
            self._folder = Path(tempfile.mkdtemp(prefix="dpareto-"))
            store = self._folder / "dpareto.db"
        path = Path(store)
        create = [] if path.exists() and path.stat().st_size else ["--create"]
        self._clients: list[Client] = []
        self._page_url: str | None = None
        self._log: deque[str] = deque(maxlen=50)
        self._first_line = ""
        self._said = threading.Event()
        self._stopped = False
        self._pid = os.getpid()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DPARETO_")}
        keeper = [sys.executable, "-S", "-c", _KEEPER, str(self._folder or "")]
        self._keeper = subprocess.Popen(
            [
                *keeper,
                program,
                "serve",
                "--listen",
                listen,
                "--store",
                os.fspath(store),
                *create,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            # Ctrl-C must reach the program, not its server.
            start_new_session=True,
            creationflags=_WITHOUT_CONSOLE,
        )
        self._readers = [
            threading.Thread(target=target, daemon=True) for target in (self._listen, self._collect)
        ]
        for reader in self._readers:
            reader.start()
        atexit.register(self.stop)
        try:
            self._wait(timeout)
        except BaseException:
            self.stop()
            raise

    def _listen(self) -> None:
        assert self._keeper.stdout is not None
        for line in self._keeper.stdout:
            text = line.decode(errors="replace").strip()
            if not self._said.is_set():
                self._first_line = text
                self._said.set()
        self._said.set()
        if not self._stopped:
            self._readers[1].join(5)  # its last lines
            for client in self._clients:
                client._transport.close(self._last_words())

    def _last_words(self) -> str:
        return "the server ended: " + "\n".join(self._log)

    def _collect(self) -> None:
        assert self._keeper.stderr is not None
        for line in self._keeper.stderr:
            self._log.append(line.decode(errors="replace").rstrip())

    def _wait(self, timeout: float) -> None:
        if not self._said.wait(timeout):
            raise ServerError(f"the server did not start within {timeout} s")
        if not self._first_line.startswith(_LISTENING):
            self._keeper.wait()
            self._readers[1].join(5)
            words = self._last_words()
            if "in use by another process" in words:
                words += (
                    "\nThe server that has it may be one of this program, of a cell that ran "
                    "before: use that one, or stop() it"
                )
            raise ServerError(words)
        with Client(self.address, patience=timeout) as client:
            self._page_url = client.page_url()

    @property
    def address(self) -> str:
        """Its address: host:port."""
        return self._first_line.removeprefix(_LISTENING)

    @property
    def page_url(self) -> str | None:
        """URL of its page, for a browser of this machine."""
        return self._page_url

    @property
    def log(self) -> str:
        """The last lines of its log."""
        return "\n".join(self._log)

    def client(self, **options: Any) -> Client:
        """Returns a client of the server, which is closed with it.

        Its calls fail with `ServerError` if the server ends unexpectedly.
        """
        if self._stopped:
            raise ServerError("the server is stopped")
        if self._pid == os.getpid() and self._keeper.poll() is not None:
            raise ServerError(self._last_words())
        client = Client(self.address, tls=False, **options)
        client._transport.page_url = self._page_url
        self._clients.append(client)
        return client

    def stop(self) -> None:
        """Stops the server and waits for its end. Acknowledged changes are in the store."""
        if self._stopped or self._pid != os.getpid():
            return  # a forked child has no server
        self._stopped = True
        atexit.unregister(self.stop)
        for client in self._clients:
            client.close()
        assert self._keeper.stdin is not None
        with suppress(OSError):  # it ended unexpectedly
            self._keeper.stdin.write(b"x")  # forked children may keep the pipe open
            self._keeper.stdin.flush()
        with suppress(OSError):
            self._keeper.stdin.close()
        try:
            self._keeper.wait(15)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        for reader in self._readers:
            reader.join(5)
        for pipe in (self._keeper.stdout, self._keeper.stderr):
            if pipe is not None:
                pipe.close()

    def __repr__(self) -> str:
        return f"<LocalServer {self.address}{' (stopped)' if self._stopped else ''}>"

    def __enter__(self) -> LocalServer:
        if self._stopped:
            raise DParetoError("the server is stopped")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
