"""Pictures of queries."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import _internal
from .errors import Error


class Plot:
    """The picture of a query, which notebooks show. :meth:`Relation.plot` makes pictures."""

    __slots__ = ("_picture",)

    def __init__(self, picture: _internal.Picture) -> None:
        self._picture = picture

    @property
    def size(self) -> tuple[int, int]:
        """The width and the height in pixels."""
        return self._picture.size()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file, whose name ends in ``.png`` or ``.svg``."""
        data = self._picture.encode(os.fspath(path))
        Path(path).write_bytes(data)

    def _repr_png_(self) -> bytes:
        return self._picture.encode("plot.png")

    def _repr_svg_(self) -> str | None:
        """Return the picture as SVG; ``None`` if it has too many values for that."""
        try:
            return self._picture.encode("plot.svg").decode()
        except Error:
            return None

    def __repr__(self) -> str:
        width, height = self.size
        return f"<gridfusion.Plot, {width} × {height} pixels>"


def options(**given: Any) -> list[tuple[str, str]]:
    """Return options as the program has them."""
    return [(name, _text(name, value)) for name, value in given.items() if value is not None]


def _text(name: str, value: Any) -> str:
    if name.endswith("_limits") and not isinstance(value, str):
        low, high = value
        return f"{_end(low)}..{_end(high)}"
    if name == "contours" and value is True:
        return "auto"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value)


def _end(value: Any) -> str:
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
