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
        if key in encoding and stored is not None:
            if isinstance(encoding[key], (int, float)):
                encoding[key] = np.array(encoding[key]).astype(stored)[()]
            elif stored.kind == "f" and re.fullmatch("[A-Za-z0-9+/]{11}=", str(encoding[key])):
                # xarray writes those of Zarr as base64 of a double.
                encoding[key] = stored.type(np.frombuffer(base64.b64decode(encoding[key]), "<f8")[0])
            else:
                del encoding[key]
    if dtype.kind in "mM":
        encoding |= {key: attributes[key] for key in ("units", "calendar") if key in attributes}
    # Integers have no NaN: without a value for what is missing, floats stay floats.
    if dtype.kind != "b" and stored is not None and (stored.kind == "f" or not is_nullable or "_FillValue" in encoding or "missing_value" in encoding):
        encoding["dtype"] = stored
    shape, chunks = row["shape"], row["chunk_shape"]
    if chunks and len(chunks) == len(dims):
        encoding["original_shape"] = tuple(shape)
        if any(edge < length for edge, length in zip(chunks, shape)):
            encoding["chunksizes"] = tuple(chunks)
            encoding["preferred_chunks"] = dict(zip(dims, chunks))
    return encoding


def _stored(element: str | None) -> np.dtype | None:
    """Return the type of stored numbers, such as ``i16``."""
    found = re.fullmatch(r"([iuf])(8|16|32|64)", element or "")
    return np.dtype(f"{found[1]}{int(found[2]) // 8}") if found and element != "f8" else None
