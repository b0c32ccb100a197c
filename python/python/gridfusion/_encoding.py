"""How a file stores a variable, as ``encoding`` of xarray. A file that xarray writes then stores it likewise."""

from __future__ import annotations

import base64
import re
from typing import Any

import numpy as np

#: Attributes that tell how values are stored.
PACKED = ("_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "_Encoding")


def encoding_of(
    row: dict[str, Any], attributes: dict[str, Any], dims: list[str], dtype: np.dtype, is_nullable: bool
) -> dict[str, Any]:
    """Return the encoding of a variable, given its row of ``array_info``, its attributes, and the type of its decoded values."""
    stored = _stored(row["element_type"])
    encoding = {key: attributes[key] for key in PACKED if key in attributes}
    for key in ("_FillValue", "missing_value"):
        if key in encoding and stored is not None and (value := _missing(encoding.pop(key), stored)) is not None:
            encoding[key] = value
    if dtype.kind in "mM":
        encoding |= {key: attributes[key] for key in ("units", "calendar") if key in attributes}
    if stored is not None and dtype.kind != "b":
        # Integers have no NaN: without a value for what is missing, floats stay floats.
        if stored.kind == "f" or not is_nullable or {"_FillValue", "missing_value"} & set(encoding):
            encoding["dtype"] = stored
    shape, chunks = row["shape"], row["chunk_shape"]
    if chunks and len(chunks) == len(dims):
        encoding["original_shape"] = tuple(shape)
        if any(edge < length for edge, length in zip(chunks, shape)):
            encoding["chunksizes"] = tuple(chunks)
            encoding["preferred_chunks"] = dict(zip(dims, chunks))
    return encoding


def _missing(value: Any, stored: np.dtype) -> Any:
    """Return the value of what is missing in the type of the variable; ``None`` for one that does not fit, and for several."""
    if stored.kind == "f" and isinstance(value, str) and re.fullmatch("[A-Za-z0-9+/]{11}=", value):
        # xarray writes those of Zarr as base64 of a double.
        value = np.frombuffer(base64.b64decode(value), "<f8")[0]
    if not isinstance(value, (int, float)):
        return None
    if stored.kind == "f":
        return stored.type(value)
    # Attributes of unsigned numbers may be signed, and the other way round.
    bits = 8 * stored.itemsize
    if not -(2 ** (bits - 1)) <= value < 2**bits or value != int(value):
        return None
    return np.array(int(value) % 2**bits, f"u{stored.itemsize}").view(stored)[()]


def _stored(element: str | None) -> np.dtype | None:
    """Return the type of stored numbers, such as ``i16``."""
    is_number = re.fullmatch(r"[iu](8|16|32|64)|f(16|32|64)", element or "")
    return np.dtype(f"{element[0]}{int(element[1:]) // 8}") if element and is_number else None
