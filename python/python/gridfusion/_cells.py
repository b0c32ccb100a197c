"""The cells of a variable, which xarray reads when it needs them.

An index of xarray becomes a query of the box around it. Numbers and times are read to their places. Texts and other values come as rows, in
batches: beside each value, an index per dimension tells the place of the cell. So a read needs little more memory than its box.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

import gridfusion

from ._relation import numpy_column
from ._sql import call, name as quoted_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._internal import Rows, RowStream


class Cells(BackendArray):
    """The cells of a variable, which are read when they are indexed. Other processes may read them too."""

    def __init__(
        self,
        location: str,
        dataset: str,
        options: dict[str, Any],
        column: str,
        shape: tuple[int, ...],
        dtype: np.dtype,
    ) -> None:
        self.location = location
        self.dataset = dataset
        self.options = options
        self.column = column
        self.shape = shape
        self.dtype = dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        places = [_places(it, length) for it, length in zip(key, self.shape)]
        single = tuple(at for at, it in enumerate(key) if isinstance(it, (int, np.integer)))
        if any(not len(it) for it in places):
            return np.empty([len(it) for at, it in enumerate(places) if at not in single], self.dtype)
        box = self._box([(int(it.min()), int(it.max())) for it in places])
        if not all((np.diff(it) == 1).all() for it in places):
            box = box[np.ix_(*(it - it.min() for it in places))]
        return box.squeeze(axis=single)

    def _box(self, ranges: list[tuple[int, int]]) -> np.ndarray:
        """Read the cells from the first to the last place along each axis."""
        con = gridfusion.default_connection()
        table = call("read_array", self.location, self.dataset, **{**self.options, "index_columns": True})
        indices = con.sql(f"SELECT * FROM {table}").columns[-len(self.shape) :] if self.shape else []
        names = [quoted_name(it) for it in indices]
        within = [
            f"{name} BETWEEN {low} AND {high}"
            for name, (low, high), length in zip(names, ranges, self.shape)
            if high - low + 1 < length
        ]
        where = f" WHERE {' AND '.join(within)}" if within else ""
        query = con.sql(f"SELECT {', '.join([*names, quoted_name(self.column)])} FROM {table}{where}")
        shape = tuple(high - low + 1 for low, high in ranges)
        box = query._cells(list(range(len(names))))
        if box is not None:
            # The indices tell only what the ranges tell.
            return self._typed(*numpy_column(dict(box[1])[len(names)], 0)).reshape(shape)
        cells = np.empty(math.prod(shape), self.dtype)
        found = 0
        for rows in _batches(query._query.stream()):
            if found + len(rows) <= len(cells):
                self._put(rows, ranges, cells)
            found += len(rows)
        if found != len(cells):
            raise gridfusion.DataError(f"{self.location}: {found} cells of {self.dataset!r}, expected {shape}")
        return cells.reshape(shape)

    def _put(self, rows: Rows, ranges: list[tuple[int, int]], cells: np.ndarray) -> None:
        """Put the values of rows into their cells."""
        values = self._typed(*numpy_column(rows, len(ranges)))
        places = np.zeros(len(values), np.intp)
        for at, (low, high) in enumerate(ranges):
            places *= high - low + 1
            places += numpy_column(rows, at)[0] - low
        cells[places] = values

    def _typed(self, values: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        return with_missing(values, mask, self.dtype)


def with_missing(values: np.ndarray, mask: np.ndarray | None, dtype: np.dtype) -> np.ndarray:
    """Return values of a type, with its missing value in the place of NULL."""
    if mask is not None or values.dtype != dtype:
        values = values.astype(dtype)
    if mask is not None:
        values[mask] = None if dtype == object else np.array("NaT" if dtype.kind in "mM" else np.nan, dtype)
    return values


def _batches(stream: RowStream) -> Iterator[Rows]:
    try:
        while (rows := stream.next()) is not None:
            yield rows
    finally:
        stream.close()


def _places(key: Any, length: int) -> np.ndarray:
    """Return the places along an axis that a key of xarray selects."""
    if isinstance(key, slice):
        return np.arange(length)[key]
    places = np.atleast_1d(np.asarray(key))
    return np.where(places < 0, places + length, places)


def dtype_of(values: np.ndarray, is_nullable: bool) -> np.dtype:
    """Return the type of cells. Integers that may be missing are floats, as xarray decodes them."""
    if is_nullable and values.dtype.kind in "iu":
        return np.dtype(np.float32 if values.dtype.itemsize <= 2 else np.float64)
    return np.dtype(object) if is_nullable and values.dtype.kind == "b" else values.dtype
