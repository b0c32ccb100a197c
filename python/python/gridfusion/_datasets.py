"""Datasets of xarray as tables.

Variables in memory stay where numpy has them. All others are computed chunk by chunk, when a query reads them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import DataError, Warning

if TYPE_CHECKING:
    import xarray

    #: The letters of numpy for a type, the bytes of values or a function that returns those of a box, and which values are not NULL.
    Values = tuple[str, np.ndarray | Callable[[Sequence[tuple[int, int]]], np.ndarray], np.ndarray | None]

#: The cells of a chunk, where nothing else tells their number.
CELLS = 1 << 20


def arrays(data: xarray.Dataset | xarray.DataArray) -> tuple[list[Any], list[Any], list[list[int]]]:
    """Return the dimensions, the variables and the lengths of chunks of a dataset, for the compiled module.

    There is a column per dimension, variable and coordinate, as SQL sees files.
    """
    import xarray

    if isinstance(data, xarray.DataArray):
        data = data.to_dataset(name=data.name or "value")
    shapes = {it.dims for it in data.data_vars.values()}
    if len(shapes) != 1:
        shown = ", ".join(f"{name} ({', '.join(map(str, it.dims))})" for name, it in data.data_vars.items())
        raise ValueError(f"a table needs variables with the same dimensions; register some of {shown or 'no variable'}")
    dims = shapes.pop()
    columns = {name: it.variable for name, it in data.data_vars.items()}
    left_out = []
    for name, coordinate in data.coords.items():
        if name not in dims:
            if set(coordinate.dims) <= set(dims):
                columns[name] = coordinate.variable
            else:
                left_out.append(f"{name} ({', '.join(map(str, coordinate.dims))})")
    if left_out:
        warnings.warn(f"coordinates of other dimensions are left out: {', '.join(left_out)}", Warning, stacklevel=4)
    axes = [(str(dim), data.sizes[dim], *_labels(data, dim)) for dim in dims]
    lengths = _chunks([data.sizes[dim] for dim in dims], [it for it in columns.values() if it.dims == dims])
    return axes, [_column(str(name), it, dims) for name, it in columns.items()], lengths


def _labels(data: xarray.Dataset, dim: Any) -> tuple[Values | None, dict[str, str]]:
    if dim not in data.coords:
        return None, {}
    return _values(str(dim), data.coords[dim].variable.values), _attributes(data.coords[dim].attrs)


def _attributes(attributes: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in attributes.items()}


def _column(name: str, variable: xarray.Variable, dims: tuple[Any, ...]) -> tuple[str, list[int], Values, dict[str, str]]:
    own = [dim for dim in dims if dim in variable.dims]
    held = _held(variable)
    dtype = variable.dtype
    is_fixed = dtype.kind in "biufmMS" and dtype.itemsize
    if held is None and own == list(dims) == list(variable.dims) and is_fixed:
        dtype = dtype.newbyteorder("<")
        values: Values = (dtype.str, _computed(variable, dtype), None)
    else:
        values = _values(name, variable.transpose(*own).values if held is None else held.transpose([variable.dims.index(it) for it in own]))
    return name, [dims.index(dim) for dim in own], values, _attributes(variable.attrs)


def _held(variable: xarray.Variable) -> np.ndarray | None:
    """Return the values of a variable if they can be shared: in memory, row-major, as this machine has numbers."""
    held = getattr(variable, "_data", None)
    # A subclass, such as a masked array, has values that the memory does not tell.
    if type(held) is np.ndarray and (held.flags.c_contiguous and held.dtype.isnative or held.dtype.kind in "OUT"):
        return held
    return None


def _computed(variable: xarray.Variable, dtype: np.dtype) -> Callable[[Sequence[tuple[int, int]]], np.ndarray]:
    """Return a function that returns the bytes of a box of cells."""

    def cells(box: Sequence[tuple[int, int]]) -> np.ndarray:
        return _bytes(variable[tuple(slice(*it) for it in box)].values.astype(dtype, copy=False))

    return cells


def _values(name: str, values: np.ndarray) -> Values:
    """Return values of any type as those of one that has a width."""
    if values.dtype.kind in "OUT":
        return _texts(name, values)
    if values.dtype.kind not in "biufmMS":
        raise DataError(f"{name!r} has values that Arrow lacks: {values.dtype}")
    if values.dtype.str[0] == ">":
        values = values.astype(values.dtype.newbyteorder("<"))
    return values.dtype.str, _bytes(values), None


def _texts(name: str, values: np.ndarray) -> Values:
    """Return texts in as many bytes as the longest one has, and a byte per text that is 0 for NULL."""
    flat = values.reshape(-1).tolist()
    is_null = [it is None or it != it for it in flat]
    for value, is_missing in zip(flat, is_null):
        if not is_missing and not isinstance(value, str):
            kind = type(value)
            advice = "; convert them with ds.convert_calendar('standard') before" if kind.__module__.startswith("cftime") else ""
            raise DataError(f"{name!r} has values that Arrow lacks, such as {kind.__module__}.{kind.__qualname__}{advice}")
    encoded = [b"" if is_missing else value.encode() for value, is_missing in zip(flat, is_null)]
    if any(it.endswith(b"\0") for it in encoded):
        raise DataError(f"{name!r} has texts that end with the character NUL, which texts of one width do not keep")
    width = max(map(len, encoded), default=0) or 1
    validity = ~np.array(is_null, bool) if any(is_null) else None
    return f"|S{width}", _bytes(np.array(encoded, f"S{width}")), None if validity is None else _bytes(validity)


def _bytes(values: np.ndarray) -> np.ndarray:
    """Return the bytes of values: a view, if they are in row-major order."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _chunks(shape: list[int], variables: list[xarray.Variable]) -> list[list[int]]:
    """Return the lengths of chunks along each dimension: those of dask or of the file, and else of rows that follow one another."""
    for variable in variables:
        if _held(variable) is not None:
            continue
        if variable.chunks is not None:
            return [[int(it) for it in lengths if it] for lengths in variable.chunks]
        stored = variable.encoding.get("chunksizes")
        if stored and len(stored) == len(shape):
            edges = [max(1, min(int(edge), length)) for edge, length in zip(stored, shape)]
            edges[0] = min(max(1, shape[0]), edges[0] * max(1, CELLS // 4 // math.prod(edges)))
            return [_lengths(length, edge) for length, edge in zip(shape, edges)]
    lengths = []
    row = math.prod(shape)
    for length in shape:
        row //= max(1, length)
        lengths.append(_lengths(length, max(1, min(length, CELLS // max(1, row)))))
    return lengths


def _lengths(length: int, edge: int) -> list[int]:
    return [min(edge, length - start) for start in range(0, length, edge)]
