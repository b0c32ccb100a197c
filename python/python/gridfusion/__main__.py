"""The program ``gridfusion`` as a command of the package: ``gridfusion`` or ``python -m gridfusion``, with the arguments of the program."""

from __future__ import annotations

import signal
import sys

from . import _internal


def main() -> None:
    """Run the program with the arguments of this process, and end the process with its exit status."""
    # Ctrl-C ends the program at once, or at an export in good order. Python would only take note of it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_internal.run_program(["gridfusion", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
