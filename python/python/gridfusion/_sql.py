"""Texts of SQL made of Python values."""

from __future__ import annotations

import math
import os
from typing import Any

from .errors import ProgrammingError


def quoted(text: str) -> str:
    """Return a text in single quotes."""
    return "'" + text.replace("'", "''") + "'"


def name(text: str) -> str:
    """Return a name in double quotes."""
    return '"' + text.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Return a constant."""
    if hasattr(value, "dtype") and hasattr(value, "item") and not getattr(value, "shape", ()):
        # A scalar of numpy.
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ProgrammingError(f"an argument is {value}, expected a finite number")
        return repr(float(value))
    if isinstance(value, (str, os.PathLike)):
        return quoted(os.fspath(value))
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    raise ProgrammingError(f"an argument is {value!r}, expected a text, a path, a number, true or false, or a list of them")


def call(function: str, *arguments: Any, **options: Any) -> str:
    """Return the call of a table function, with options by name."""
    given = [*map(literal, arguments), *(f"{name(key)} => {literal(value)}" for key, value in options.items())]
    return f"{function}({', '.join(given)})"
