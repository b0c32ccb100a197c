"""Values of Python for the placeholders of a statement."""

from __future__ import annotations

import datetime
import decimal
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import ProgrammingError

#: What :func:`given` returns for a value: its name or ``None``, a plain value, and the name of its Arrow type if that is another.
Given = tuple[str | None, Any, str | None]

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
#: Units of times of numpy, and the units that hold them.
_OF_TIMES = {**{unit: "D" for unit in "YMWD"}, "h": "s", "m": "s", "generic": "ns", **{unit: unit for unit in _UNITS}}
#: The same for spans. A month has no fixed length.
_OF_SPANS = {**{unit: "s" for unit in "WDhm"}, "generic": "ns", **{unit: unit for unit in _UNITS}}


def given(parameters: Sequence[Any] | Mapping[str, Any] | None) -> tuple[list[Given] | None, bool]:
    """Return values for the placeholders of a statement, and whether they have names."""
    if parameters is None:
        return None, False
    if isinstance(parameters, Mapping):
        return [(str(name), *_typed(value)) for name, value in parameters.items()], True
    if isinstance(parameters, (str, bytes)) or not hasattr(parameters, "__iter__"):
        raise ProgrammingError(f"the parameters are {parameters!r}, expected a list or a dictionary of values")
    return [(None, *_typed(value)) for value in parameters], False


def _typed(value: Any) -> tuple[Any, str | None]:
    if value is None or isinstance(value, (bool, bytes)) or type(value).__name__ == "NAType":
        return (value if isinstance(value, (bool, bytes)) else None), None
    if hasattr(value, "to_datetime64"):
        # A Timestamp of pandas has nanoseconds.
        return _of_numpy(value.to_datetime64(), getattr(value, "tzinfo", None) is not None)
    if hasattr(value, "dtype") and hasattr(value, "item") and not getattr(value, "shape", ()):
        if value.dtype.kind in "mM":
            return _of_numpy(value, False)
        plain = value.item()
        return _typed(plain if not hasattr(plain, "dtype") else float(plain))
    if isinstance(value, int):
        number = int(value)
        is_small = -(2**63) <= number < 2**64
        return (number, None) if is_small else _of_decimal(decimal.Decimal(number))
    if isinstance(value, float):
        return float(value), None
    if isinstance(value, (str, os.PathLike)):
        return str(os.fspath(value)), None
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value), None
    if isinstance(value, decimal.Decimal):
        return _of_decimal(value)
    return _of_time(value)


def _of_time(value: Any) -> tuple[Any, str]:
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            return (value - _EPOCH) // _MICROSECOND, "Timestamp(Microsecond, None)"
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return (value - _EPOCH) // _MICROSECOND, 'Timestamp(Microsecond, Some("+00:00"))'
    if isinstance(value, datetime.date):
        return value.toordinal() - _EPOCH.toordinal(), "Date32"
    if isinstance(value, datetime.time) and value.tzinfo is None:
        return (datetime.datetime.combine(_EPOCH, value) - _EPOCH) // _MICROSECOND, "Time64(Microsecond)"
    if isinstance(value, datetime.timedelta):
        return value // _MICROSECOND, "Duration(Microsecond)"
    raise ProgrammingError(
        f"a parameter is {value!r}, expected None, a number, a text, bytes, a date, a time, a Decimal or a scalar of numpy"
    )


def _of_decimal(value: decimal.Decimal) -> tuple[Any, str | None]:
    if not value.is_finite():
        return (math.inf if value > 0 else -math.inf) if value.is_infinite() else math.nan, None
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale)
    if precision > 76:
        raise ProgrammingError(f"a parameter has {precision} digits, expected at most 76")
    return format(value, "f"), f"Decimal{128 if precision <= 38 else 256}({precision}, {scale})"


def _of_numpy(value: Any, has_zone: bool) -> tuple[Any, str]:
    """Return a time or a span of numpy. NaT is NULL."""
    import numpy

    unit, _ = numpy.datetime_data(value.dtype)
    is_span = value.dtype.kind == "m"
    held = (_OF_SPANS if is_span else _OF_TIMES).get(unit)
    if held is None:
        raise ProgrammingError(f"a parameter has the type {value.dtype}, expected years to nanoseconds, or a span of weeks to nanoseconds")
    count = None if numpy.isnat(value) else int(value.astype(f"{value.dtype.kind}8[{held}]").astype("int64"))
    if held == "D":
        return count, "Date32"
    if is_span:
        return count, f"Duration({_UNITS[held]})"
    zone = 'Some("+00:00")' if has_zone else "None"
    return count, f"Timestamp({_UNITS[held]}, {zone})"
