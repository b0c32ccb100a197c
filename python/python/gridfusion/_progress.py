"""The progress of queries."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

#: A function that is called while a query runs: with the chunks that are done, all chunks or 0, and the bytes that were read.
Report = Callable[[int, int, int], object]

#: The seconds of a query before it is reported.
PATIENCE = 0.5


@contextlib.contextmanager
def reported(progress: bool | Report | None) -> Iterator[Report | None]:
    """Return what a query calls while it runs. A bar disappears at the end."""
    if not progress:
        yield None
        return
    bar = _Bar() if progress is True else None
    begin = time.monotonic()

    def report(done: int, of: int, read: int) -> None:
        if time.monotonic() - begin >= PATIENCE:
            (bar or progress)(done, of, read)

    try:
        yield report
    finally:
        if bar is not None:
            bar.close()


class _Bar:
    """A bar of tqdm, or a line on standard error."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._length = 0

    def __call__(self, done: int, of: int, read: int) -> None:
        if not of:
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._write(f"{done} of {of} chunks, {read / 1e6:.1f} MB read")
            return
        if self._bar is None:
            self._bar = tqdm(total=of, unit="chunk", leave=False)
        self._bar.total, self._bar.n = of, done
        self._bar.refresh()

    def _write(self, text: str) -> None:
        print(f"\r{text:{self._length}}", end="", file=sys.stderr, flush=True)
        self._length = len(text)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._length:
            self._write("")
            print(end="\r", file=sys.stderr, flush=True)
