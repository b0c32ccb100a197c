"""The engine of xarray: ``xr.open_dataset("x.tet", engine="gridfusion")``.

Variables are lazy. Their cells come decoded, with missing values as NaN and times as dates. Dates that numpy lacks, such as those of the
calendar ``360_day``, are numbers, which ``xr.decode_cf`` makes dates of.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends import BackendEntrypoint
from xarray.core import indexing

import gridfusion

from ._cells import Cells, dtype_of
from ._relation import Relation, numpy_column
from ._xarray import kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class GridfusionBackend(BackendEntrypoint):
    """Opens arrays of all formats of gridfusion: NetCDF, HDF5, Zarr, TileDB and ``.tet``."""

    description = "Open NetCDF, HDF5, Zarr, dense TileDB and Tetration .tet arrays with gridfusion"
    open_dataset_parameters = (
        "filename_or_obj",
        "drop_variables",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "use_cftime",
        "decode_timedelta",
        "options",
    )

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
        mask_and_scale: bool = True,
        decode_times: Any = True,
        concat_characters: bool = True,
        decode_coords: bool | str = True,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        options: Mapping[str, Any] | None = None,
    ) -> xr.Dataset:
        """Open the arrays of a path or URL. ``options`` are those of ``gridfusion.read``.

        Of xarray's keywords, ``decode_times=False`` shows the numbers of a file, and ``decode_coords=False`` leaves the variables that
        others name as coordinates among the data. A warning tells which of the others have no effect.

        Raises
        ------
        ValueError
            If an array is sparse, or variables have different labels along a dimension of the same name.
        """
        location, options = _absolute(os.fspath(filename_or_obj)), dict(options or {})
        _warn_of_ignored(
            mask_and_scale=mask_and_scale is not True,
            concat_characters=concat_characters is not True,
            use_cftime=bool(use_cftime),
            decode_timedelta=bool(decode_timedelta),
            decode_times=decode_times not in (True, False),
            decode_coords=decode_coords not in (True, False, "coordinates"),
        )
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        rows = _listed(location, dropped)
        coordinates = {row["variable"] for row in rows if row["role"] == "coordinate"}
        datasets = list(dict.fromkeys(row["dataset"] for row in rows if row["role"] != "coordinate"))
        if datasets:
            wanted = {"coordinates": False} | ({} if decode_times is not False else {"decode_times": False})
            options = _with_known(location, datasets[0], options, wanted)
        opened = _Opened(location, options, coordinates)
        for dataset in datasets:
            opened.add(dataset, dropped, is_only=len(datasets) == 1)
        attributes = _attributes(location)
        opened.complete_attributes(attributes)
        if decode_coords:
            opened.move_coordinates()
        result = xr.Dataset(opened.variables, coords=opened.coords, attrs=attributes.get(None))
        if decode_coords and isinstance(names := result.attrs.get("coordinates"), str):
            # xarray writes coordinates without a variable of their own so.
            del result.attrs["coordinates"]
            result = result.set_coords([name for name in names.split() if name in result.variables])
        result.encoding["source"] = location
        return result


def _warn_of_ignored(**is_ignored: bool) -> None:
    names = ", ".join(name for name, is_true in is_ignored.items() if is_true)
    if names:
        text = f"gridfusion decodes values itself, so these have no effect: {names}"
        warnings.warn(text, gridfusion.Warning, stacklevel=4)


def _absolute(location: str) -> str:
    """Return a path that stays right in another folder. A dataset may follow it behind ``#``."""
    if "://" in location:
        return location
    path, mark, dataset = location.partition("#")
    return os.path.abspath(os.path.expanduser(path)) + mark + dataset


def _listed(location: str, dropped: set[str]) -> list[dict[str, Any]]:
    """Return facts about the variables that can be opened, and warn of the others."""
    facts = gridfusion.default_connection().info(location)
    rows = [dict(zip(facts.columns, row)) for row in facts.fetchall()]
    groups = sorted({row["group_name"] for row in rows if row["group_name"]})
    rows = [row for row in rows if not row["group_name"] and row["variable"] not in dropped]
    left_out = [f"{location}: groups are left out: {', '.join(groups)}"] if groups else []
    left_out += [text for row in rows if row["role"] is None for text in row["warnings"]]
    for text in left_out:
        warnings.warn(text, gridfusion.Warning, stacklevel=4)
    rows = [row for row in rows if row["role"] is not None]
    if any(row["shape"] is None for row in rows):
        raise ValueError(f"{location} is a sparse array; gridfusion.read(…).xarray() makes a dataset of some of its cells")
    return rows


def _attributes(location: str) -> dict[str | None, dict[str, Any]]:
    """Return the attributes of each variable, and of the file or store under ``None``."""
    found: dict[str | None, dict[str, Any]] = {}
    facts = gridfusion.default_connection().array_attributes(location)
    for row in facts.fetchall():
        fact = dict(zip(facts.columns, row))
        if not fact["group_name"]:
            found.setdefault(fact["variable"], {})[fact["key"]] = _typed(fact["type"], fact["value"])
    return found


def _typed(kind: str, value: str) -> Any:
    """Return numbers as numbers."""
    if kind not in ("integers", "floats") or not value:
        return value
    numbers = [int(it) if kind == "integers" else float(it) for it in value.split(", ")]
    return numbers[0] if len(numbers) == 1 else numbers


def _with_known(location: str, dataset: str, options: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Return options with those of ``wanted`` that the format has."""
    for name, value in wanted.items():
        more = {**options, name: value}
        try:
            gridfusion.default_connection().read(location, dataset, **more)
        except gridfusion.ProgrammingError as error:
            if f"unknown option '{name}'" not in str(error):
                raise
        else:
            options = more
    return options


class _Opened:
    """The variables of a location, and the labels of their dimensions."""

    def __init__(self, location: str, options: dict[str, Any], coordinates: set[str]) -> None:
        self.location = location
        self.options = options
        self.coordinates = coordinates
        self.variables: dict[str, xr.Variable] = {}
        self.coords: dict[str, xr.Variable] = {}
        # The lengths of dimensions without labels.
        self.sizes: dict[str, int] = {}

    def add(self, dataset: str, dropped: set[str], *, is_only: bool) -> None:
        """Add the variables of an array."""
        rows = gridfusion.default_connection().read(self.location, dataset, **self.options)
        facts, fields = rows._facts(), rows._source.fields()
        array = dataset.rpartition("/")[2]
        axes = [(fields[at][0], _labels(rows, at), fact[2]) for at, fact in enumerate(facts) if fact[0] is not None]
        dims = [self._dim(array, *axis) for axis in axes]
        shape = tuple(len(labels) for _, labels, _ in axes)
        none = rows._query.limit(0).collect()
        values = [at for at, (order, _, _) in enumerate(facts) if order is None]
        for at in values:
            column, _, is_nullable = fields[at]
            variable = array if len(values) == 1 else column
            if len(values) > 1 and not is_only and not column.startswith(f"{array}_"):
                # Fields of several arrays can have the same names.
                variable = f"{array}_{column}"
            if variable in dropped:
                continue
            dtype = dtype_of(numpy_column(none, at)[0], is_nullable)
            cells = Cells(self.location, dataset, self.options, column, shape, dtype)
            data = indexing.LazilyIndexedArray(cells)
            self.variables[variable] = xr.Variable(dims, data, kept(facts[at][2], dtype))

    def _dim(self, array: str, dim: str, labels: np.ndarray, attributes: dict[str, str]) -> str:
        """Return the name of a dimension, and keep its labels if it has some of its own."""
        if dim not in self.coordinates:
            # HDF5 has dimensions without names, which are called alike.
            return dim if self.sizes.setdefault(dim, len(labels)) == len(labels) else f"{array}_{dim}"
        if dim not in self.coords:
            self.coords[dim] = xr.Variable((dim,), labels, kept(attributes, labels.dtype))
        elif not np.array_equal(self.coords[dim].values, labels):
            text = f"{self.location}: {array!r} has other labels along {dim!r} than the variables before"
            raise ValueError(f"{text}; drop it with drop_variables")
        return dim

    def complete_attributes(self, attributes: dict[str | None, dict[str, Any]]) -> None:
        """Make numbers of attributes that are numbers, and keep the names of bounds, which are variables here too."""
        for name, variable in [*self.variables.items(), *self.coords.items()]:
            own = attributes.get(name, {})
            variable.attrs = {key: own.get(key, value) for key, value in variable.attrs.items()}
            if own.get("bounds") in self.variables:
                variable.attrs["bounds"] = own["bounds"]

    def move_coordinates(self) -> None:
        """Make coordinates of the variables that others name so, as xarray does."""
        for variable in list(self.variables.values()):
            if "coordinates" in variable.attrs:
                names = variable.encoding["coordinates"] = variable.attrs.pop("coordinates")
                self.coords |= {name: self.variables.pop(name) for name in names.split() if name in self.variables}


def _labels(rows: Relation, column: int) -> np.ndarray:
    labels = rows._query.labels(column)
    values = numpy_column(labels, 0)[0]
    return values.astype(str) if values.dtype == object else values
