"""The command: ``dpfront`` and ``python -m dpfront`` run the program ``dpareto``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import NoReturn

from dpfront._program import find_binary
from dpfront.errors import ServerError


def main() -> NoReturn:
    """Runs the program that `local_server` finds, with the same arguments and exit status."""
    try:
        program = find_binary()
    except ServerError as error:
        sys.exit(f"dpfront: {error}")
    command = [program, *sys.argv[1:]]
    if os.name != "nt":
        os.execv(program, command)
    # Windows replaces no process: this one waits, and leaves Ctrl-C to the program.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(subprocess.call(command))


if __name__ == "__main__":
    main()
