"""The engine of xarray: ``xr.open_dataset("x.tet", engine="gridfusion")``.

Variables are lazy. An index of xarray becomes a query of the box around it, whose cells come decoded, with times as dates and missing
values as NaN.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

import gridfusion

from ._relation import Relation, numpy_column
from ._sql import call, name as quoted_name
from ._xarray import kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class GridfusionBackend(BackendEntrypoint):
    """Opens arrays of all formats of gridfusion: NetCDF, HDF5, Zarr, TileDB and ``.tet``."""

    description = "Open NetCDF, HDF5, Zarr, dense TileDB and Tetration .tet arrays with gridfusion"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "options")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether only gridfusion opens a file."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        return os.fspath(filename_or_obj).rstrip("/").endswith((".tet", ".tet.d"))

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> xr.Dataset:
        """Open the arrays of a path or URL. ``options`` are those of ``gridfusion.read``.

        Raises
        ------
        ValueError
            If an array is sparse, or variables have different labels along a dimension of the same name.
        """
        location, options = os.fspath(filename_or_obj), dict(options or {})
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        facts = gridfusion.default_connection().info(location)
        rows = [dict(zip(facts.columns, row)) for row in facts.fetchall()]
        groups = sorted({row["group_name"] for row in rows if row["group_name"]})
        if groups:
            warnings.warn(f"{location}: groups are left out: {', '.join(groups)}", gridfusion.Warning, stacklevel=2)
        rows = [row for row in rows if not row["group_name"] and row["variable"] not in dropped]
        if any(row["shape"] is None for row in rows):
            raise ValueError(f"{location} is a sparse array; gridfusion.read(…).xarray() makes a dataset of some of its cells")
        coordinates = {row["variable"] for row in rows if row["role"] == "coordinate"}
        opened = _Opened(location, options, coordinates)
        for dataset in dict.fromkeys(row["dataset"] for row in rows if row["role"] != "coordinate"):
            opened.add(dataset, dropped)
        result = xr.Dataset(opened.variables, coords=opened.coords)
        result.encoding["source"] = location
        return result


class _Opened:
    """The variables of a location, and the labels of their dimensions."""

    def __init__(self, location: str, options: dict[str, Any], coordinates: set[str]) -> None:
        self.location = location
        self.options = options
        self.coordinates = coordinates
        self.variables: dict[str, xr.Variable] = {}
        self.coords: dict[str, xr.Variable] = {}

    def add(self, dataset: str, dropped: set[str]) -> None:
        """Add the variables of an array."""
        rows = gridfusion.default_connection().read(self.location, dataset, **self.options)
        facts, fields = rows._facts(), rows._source.fields()
        dims, shape = [], []
        for at, (order, _, attributes) in enumerate(facts):
            if order is not None:
                labels = _labels(rows, at)
                dims.append(fields[at][0])
                shape.append(len(labels))
                self._label(dims[-1], labels, attributes, dataset)
        none = rows._query.limit(0).collect()
        values = [at for at, (order, _, _) in enumerate(facts) if order is None]
        for at in values:
            column, _, is_nullable = fields[at]
            # A variable that is a table of its own has its values in one column.
            variable = dataset.rpartition("/")[2] if len(values) == 1 else column
            if variable in dropped:
                continue
            dtype = _dtype(numpy_column(none, at)[0], is_nullable)
            cells = _Cells(self.location, dataset, self.options, column, dims, tuple(shape), dtype)
            data = indexing.LazilyIndexedArray(cells)
            self.variables[variable] = xr.Variable(dims, data, kept(facts[at][2], dtype))

    def _label(self, dim: str, labels: np.ndarray, attributes: dict[str, str], dataset: str) -> None:
        if dim not in self.coordinates:
            return
        if dim not in self.coords:
            self.coords[dim] = xr.Variable((dim,), labels, kept(attributes, labels.dtype))
        elif not np.array_equal(self.coords[dim].values, labels):
            raise ValueError(f"{self.location}: {dataset!r} has other labels along {dim!r} than the variables before; drop it with drop_variables")


def _labels(rows: Relation, column: int) -> np.ndarray:
    labels = rows._query.labels(column)
    values = numpy_column(labels, 0)[0]
    return values.astype(str) if values.dtype == object else values


def _dtype(values: np.ndarray, is_nullable: bool) -> np.dtype:
    """Return the type of cells. Integers that may be missing are floats, as xarray decodes them."""
    if is_nullable and values.dtype.kind in "iu":
        return np.dtype(np.float32 if values.dtype.itemsize <= 2 else np.float64)
    return np.dtype(object) if is_nullable and values.dtype.kind == "b" else values.dtype


class _Cells(BackendArray):
    """The cells of a variable, which are read when they are indexed. Other processes may read them too."""

    def __init__(
        self,
        location: str,
        dataset: str,
        options: dict[str, Any],
        column: str,
        dims: list[str],
        shape: tuple[int, ...],
        dtype: np.dtype,
    ) -> None:
        self.location = location
        self.dataset = dataset
        self.options = options
        self.column = column
        self.dims = dims
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
        inside = np.ix_(*(it - it.min() for it in places)) if places else ()
        return box[inside].squeeze(axis=single) if places else box

    def _box(self, ranges: list[tuple[int, int]]) -> np.ndarray:
        """Read the cells from the first to the last place along each axis."""
        con = gridfusion.default_connection()
        table = call("read_array", self.location, self.dataset, **{**self.options, "index_columns": True})
        indices = con.sql(f"SELECT * FROM {table}").columns[-len(self.dims) :] if self.dims else []
        names = [quoted_name(it) for it in indices]
        within = [
            f"{name} BETWEEN {low} AND {high}"
            for name, (low, high), length in zip(names, ranges, self.shape)
            if high - low + 1 < length
        ]
        where = f" WHERE {' AND '.join(within)}" if within else ""
        rows = con.sql(f"SELECT {', '.join([*names, quoted_name(self.column)])} FROM {table}{where}")._collect()
        values, mask = numpy_column(rows, len(names))
        if mask is not None or values.dtype != self.dtype:
            values = values.astype(self.dtype)
        if mask is not None:
            values[mask] = None if self.dtype == object else np.array("NaT" if self.dtype.kind in "mM" else np.nan, self.dtype)
        shape = tuple(high - low + 1 for low, high in ranges)
        if len(values) != int(np.prod(shape, dtype=np.int64)):
            raise gridfusion.DataError(f"{self.location}: {len(values)} cells of {self.dataset!r}, expected {shape}")
        cells = np.empty(shape, self.dtype)
        cells[tuple(numpy_column(rows, at)[0] - low for at, (low, _) in enumerate(ranges))] = values if names else values[0]
        return cells


def _places(key: Any, length: int) -> np.ndarray:
    """Return the places along an axis that a key of xarray selects."""
    if isinstance(key, slice):
        return np.arange(length)[key]
    places = np.atleast_1d(np.asarray(key))
    return np.where(places < 0, places + length, places)
