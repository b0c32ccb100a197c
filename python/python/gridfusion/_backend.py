"""The engine of xarray: ``xr.open_dataset("x.tet", engine="gridfusion")``.

Variables are lazy. Their cells come decoded, with missing values as NaN and times as dates; what files store is in ``encoding``. xarray
itself decodes coordinates, dates that numpy lacks, such as those of the calendar ``360_day``, and times for which its keywords ask.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends import BackendEntrypoint
from xarray.core import indexing

import gridfusion

from ._cells import Cells, dtype_of, with_missing
from ._encoding import PACKED, encoding_of
from ._relation import Relation, numpy_column
from ._xarray import kept, typed

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
        "group",
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
        group: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> xr.Dataset:
        """Open the arrays of a path or URL. ``options`` are those of ``gridfusion.read``.

        ``decode_times``, ``use_cftime``, ``decode_timedelta``, ``decode_coords`` and ``group`` are as in other engines. Values are always
        decoded: a warning tells that ``mask_and_scale`` and ``concat_characters`` have no effect.

        Raises
        ------
        ValueError
            If an array is sparse, or variables have different labels along a dimension of the same name.
        OSError
            If the group has neither variables nor attributes.
        """
        location, options = _absolute(os.fspath(filename_or_obj)), dict(options or {})
        _warn_of_ignored(mask_and_scale=mask_and_scale is not True, concat_characters=concat_characters is not True)
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        if group is not None and not isinstance(group, str):
            raise ValueError(f"group = {group!r}, which must be a string")
        own_group = (group or "").strip("/")
        rows = _listed(location, own_group, dropped)
        attributes = _attributes(location, own_group)
        if own_group and not rows and not attributes:
            raise OSError(f"{location} has no group {own_group!r} with variables or attributes")
        decodes_times = decode_times is True and not use_cftime and decode_timedelta is None
        if rows:
            wanted = {"coordinates": False} | ({} if decodes_times else {"decode_times": False})
            options = _with_known(location, rows[0]["dataset"], options, wanted)
        opened = _Opened(location, options, rows, attributes)
        opened.add_all(dropped)
        variables, attrs, coordinates = xr.conventions.decode_cf_variables(
            {**opened.variables, **opened.coords},
            attributes.get(None, {}),
            concat_characters=False,
            mask_and_scale=False,
            decode_times=decode_times if not decodes_times or _has_cftime() else False,
            decode_coords=decode_coords,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )
        coordinates = (coordinates | set(opened.coords)) & set(variables)
        coords = {name: variables.pop(name) for name in list(variables) if name in coordinates}
        # xarray itself makes indexes, if it is new enough to be told not to.
        indexes = {} if "create_default_indexes" in inspect.signature(xr.open_dataset).parameters else None
        result = xr.Dataset(variables, coords=xr.Coordinates(coords, indexes=indexes), attrs=attrs)
        result.encoding["source"] = location
        return result


def _has_cftime() -> bool:
    return importlib.util.find_spec("cftime") is not None


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


def _listed(location: str, group: str, dropped: set[str]) -> list[dict[str, Any]]:
    """Return facts about the variables of a group that can be opened, and warn of the others."""
    facts = gridfusion.default_connection().info(location)
    rows = [dict(zip(facts.columns, row)) for row in facts.fetchall()]
    inner = f"{group}/" if group else ""
    groups = sorted({name for row in rows if (name := row["group_name"] or "") != group and name.startswith(inner)})
    rows = [row for row in rows if (row["group_name"] or "") == group and row["variable"] not in dropped]
    left_out = [f"{location}: groups are left out: {', '.join(groups)}"] if groups else []
    left_out += [text for row in rows if row["role"] is None for text in row["warnings"]]
    for text in left_out:
        warnings.warn(text, gridfusion.Warning, stacklevel=4)
    rows = [row for row in rows if row["role"] is not None]
    if any(row["shape"] is None for row in rows):
        raise ValueError(f"{location} is a sparse array; gridfusion.read(…).xarray() makes a dataset of some of its cells")
    return rows


def _attributes(location: str, group: str) -> dict[str | None, dict[str, Any]]:
    """Return the attributes of each variable of a group, and of the group itself under ``None``."""
    found: dict[str | None, dict[str, Any]] = {}
    facts = gridfusion.default_connection().array_attributes(location)
    for row in facts.fetchall():
        fact = dict(zip(facts.columns, row))
        if (fact["group_name"] or "") == group:
            found.setdefault(fact["variable"], {})[fact["key"]] = typed(fact["type"], fact["value"])
    return found


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

    def __init__(
        self,
        location: str,
        options: dict[str, Any],
        rows: list[dict[str, Any]],
        attributes: dict[str | None, dict[str, Any]],
    ) -> None:
        self.location = location
        self.options = options
        self.attributes = attributes
        self.coordinates = {row["variable"]: row for row in rows if row["role"] == "coordinate"}
        self.arrays = {row["dataset"]: row for row in rows if row["role"] != "coordinate"}
        self.variables: dict[str, xr.Variable] = {}
        self.coords: dict[str, xr.Variable] = {}
        # The lengths of dimensions without labels.
        self.sizes: dict[str, int] = {}

    def add_all(self, dropped: set[str]) -> None:
        """Add the arrays, and the labels of dimensions that no array has."""
        for dataset in self.arrays:
            self._add(dataset, dropped)
        for name, row in self.coordinates.items():
            if name not in self.coords:
                rows = gridfusion.default_connection().read(self.location, row["dataset"], **self.options)
                at = rows.columns.index(name)
                self._dim(name, name, _labels(rows, at), rows._facts()[at][2])

    def _add(self, dataset: str, dropped: set[str]) -> None:
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
            if len(values) > 1 and len(self.arrays) > 1 and not column.startswith(f"{array}_"):
                # Fields of several arrays can have the same names.
                variable = f"{array}_{column}"
            if variable in dropped:
                continue
            dtype = dtype_of(numpy_column(none, at)[0], is_nullable)
            cells = Cells(self.location, dataset, self.options, column, shape, dtype)
            data = indexing.LazilyIndexedArray(cells)
            row = self.arrays[dataset]
            self.variables[variable] = self._variable(variable, dims, data, dtype, facts[at][2], row, is_nullable)

    def _variable(
        self,
        name: str,
        dims: list[str],
        data: Any,
        dtype: np.dtype,
        attributes: dict[str, str],
        row: dict[str, Any],
        is_nullable: bool,
    ) -> xr.Variable:
        """Return a variable. Attributes that are numbers are numbers, and bounds are named: they are variables here."""
        own = self.attributes.get(name, {})
        encoding = encoding_of(row, own, dims, dtype, is_nullable)
        attrs = {key: own.get(key, value) for key, value in kept(attributes, dtype).items() if key not in PACKED}
        if "bounds" in own:
            attrs["bounds"] = own["bounds"]
        return xr.Variable(dims, data, attrs, encoding)

    def _dim(self, array: str, dim: str, labels: np.ndarray, attributes: dict[str, str]) -> str:
        """Return the name of a dimension, and keep its labels if it has some of its own."""
        if dim not in self.coordinates:
            # HDF5 has dimensions without names, which are called alike.
            return dim if self.sizes.setdefault(dim, len(labels)) == len(labels) else f"{array}_{dim}"
        if dim not in self.coords:
            is_null = bool(xr.Variable((dim,), labels).isnull().any())
            self.coords[dim] = self._variable(dim, [dim], labels, labels.dtype, attributes, self.coordinates[dim], is_null)
        elif not self.coords[dim].equals(xr.Variable((dim,), labels)):
            text = f"{self.location}: {array!r} has other labels along {dim!r} than the variables before"
            raise ValueError(f"{text}; drop it with drop_variables")
        return dim


def _labels(rows: Relation, column: int) -> np.ndarray:
    """Return the labels of a dimension. One that is NULL is missing as in other variables."""
    values, mask = numpy_column(rows._query.labels(column), 0)
    if mask is None:
        return values.astype(str) if values.dtype == object else values
    return with_missing(values, mask, dtype_of(values, True))
