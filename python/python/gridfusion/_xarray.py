"""Rows as datasets of xarray.

The rows of a whole grid in row-major order are the cells of an array, so that reshaping them is all. Rows in any other order are numbered
by the labels of their dimensions, and put into their cells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ._relation import numpy_column

if TYPE_CHECKING:
    import xarray

    from ._relation import Relation

#: Cells up to which rows may be as few as they are.
SMALL = 1 << 24
#: Cells per row, above which rows of more cells than that are out of proportion.
SPARSE = 64
#: Attributes that tell how a file stores values, which the values of a result are not.
STORED = {"_FillValue", "add_offset", "missing_value", "scale_factor", "bounds"}
#: The attribute that tells which of the others are numbers.
NUMBERS = "gridfusion.numbers"


def dataset(relation: Relation, dims: list[str] | None, fill_value: Any) -> xarray.Dataset:
    """Return the rows of a relation as a dataset."""
    import xarray

    columns, facts = relation.columns, relation._facts()
    dims = _dims(relation, columns, dims)
    attributes = {column: facts[at][2] for at, column in enumerate(columns)}
    found = relation._cells([columns.index(dim) for dim in dims], fill_value is not None)
    if found is not None:
        return _box(dims, columns, *found, attributes, fill_value)
    rows = relation._collect()
    if not dims and len(rows) != 1:
        raise ValueError(f"{len(rows)} rows need dimensions; {_advice(columns)}")
    at = {column: columns.index(column) for column in columns}
    axes = [_Axis(relation, rows, dim, at[dim], facts[at[dim]][0]) for dim in dims]
    places = _Places(dims, axes, len(rows))
    coords = {axis.name: (axis.name, axis.labels, kept(attributes[axis.name], axis.labels.dtype)) for axis in axes}
    variables = {}
    for column in columns:
        if column not in dims:
            cells = places.put(column, *numpy_column(rows, at[column]), _fill_of(fill_value, column))
            variables[column] = (dims, cells, kept(attributes[column], cells.dtype))
    return xarray.Dataset(variables, coords=coords)


def _fill_of(fill_value: Any, column: str) -> Any:
    return fill_value.get(column) if isinstance(fill_value, Mapping) else fill_value


def _box(
    dims: list[str],
    columns: list[str],
    axes: list[int],
    parts: list[tuple[int, Any]],
    attributes: dict[str, dict[str, str]],
    fill_value: Any,
) -> xarray.Dataset:
    """Return the cells of a box of an array as a dataset. They are in one piece, in the order of its axes."""
    import xarray

    found = {at: numpy_column(part, 0) for at, part in parts}
    labels = {at: found[at][0].astype(str) if _are_texts(found[at][0]) else found[at][0] for at in axes}
    names = [columns[at] for at in axes]
    shape = [len(labels[at]) for at in axes]
    coords = {columns[at]: (columns[at], labels[at], kept(attributes[columns[at]], labels[at].dtype)) for at in axes}
    variables = {}
    for at, column in enumerate(columns):
        if at not in axes:
            cells = filled(column, *found[at], _fill_of(fill_value, column)).reshape(shape)
            cells = cells.transpose([names.index(dim) for dim in dims])
            variables[column] = (dims, cells, kept(attributes[column], cells.dtype))
    return xarray.Dataset(variables, coords={dim: coords[dim] for dim in dims})


def _dims(relation: Relation, columns: list[str], dims: list[str] | None) -> list[str]:
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise ValueError(f"two columns are called {twice!r}; rename one with AS")
    if dims is None:
        dims = relation.dims
        if not dims:
            raise ValueError(
                f"no column of {', '.join(columns)} is a dimension of an array or a key of GROUP BY; {_advice(columns)}"
            )
    dims = [dims] if isinstance(dims, str) else list(dims)
    for dim in dims:
        if dim not in columns:
            raise ValueError(f"there is no column {dim!r}; the columns are {', '.join(columns)}")
        if dims.count(dim) > 1:
            raise ValueError(f"the dimension {dim!r} is named twice")
    return dims


def _advice(columns: list[str]) -> str:
    return f"name the dimensions, as in xarray(dims=[{columns[0]!r}]), or none with dims=[] for a single row"


def kept(attributes: dict[str, str], dtype: np.dtype) -> dict[str, Any]:
    """Return the attributes that are true for values of a type. xarray itself writes the units of times."""
    kinds = json.loads(attributes.get(NUMBERS, "{}"))
    left_out = STORED | ({"units", "calendar"} if dtype.kind in "mM" else set()) | ({"dtype"} if dtype.kind in "bm" else set())
    left_out |= {NUMBERS}
    return {key: typed(kinds.get(key, ""), value) for key, value in sorted(attributes.items()) if key not in left_out}


def typed(kind: str, value: str) -> Any:
    """Return numbers as numbers."""
    parse = {"integers": int, "singles": lambda it: float(np.float32(it)), "doubles": float, "floats": float}.get(kind)
    if parse is None or not value:
        return value
    numbers = [parse(it) for it in value.split(", ")]
    return numbers[0] if len(numbers) == 1 else numbers


class _Axis:
    """The labels of a dimension per row, and without repetition in the order of the array."""

    def __init__(self, relation: Relation, rows: Any, name: str, column: int, order: str | None) -> None:
        self.name = name
        self.order = order
        values, mask = numpy_column(rows, column)
        if mask is not None:
            raise ValueError(f"the dimension {name!r} is NULL in a row; add WHERE {name} IS NOT NULL")
        # Texts have a type of numpy, which xarray expects of labels.
        self.values = values.astype(str) if _are_texts(values) else values
        # Labels in an order of their own: the number of each in the array.
        self.numbers: dict[Any, int] | None = None
        if order == "other" and relation._query is not None:
            source = relation._query.labels(column)
            if source is not None:
                labels = numpy_column(source, 0)[0].tolist()
                self.numbers = {label: at for at, label in reversed(list(enumerate(labels)))}
        self.labels = self.values[:0]

    def in_order(self, labels: np.ndarray) -> bool:
        """Whether labels without repetition are in the order of the array."""
        if len(labels) < 2:
            return True
        if self.numbers is not None:
            at = np.array([self.numbers.get(label, -1) for label in labels.tolist()])
            return bool((at[1:] > at[:-1]).all()) and at[0] >= 0
        if self.order == "descending":
            return bool((labels[1:] < labels[:-1]).all())
        return bool((labels[1:] > labels[:-1]).all())

    def number(self) -> np.ndarray:
        """Set the labels, and return the number of the label of each row."""
        labels, codes = _numbered(self.values)
        if self.numbers is not None:
            at = [self.numbers.get(label, len(self.numbers)) for label in labels.tolist()]
            order = np.argsort(at, kind="stable")
        elif self.order == "descending":
            order = np.arange(len(labels))[::-1]
        else:
            self.labels = labels
            return codes
        self.labels = labels[order]
        place = np.empty(len(labels), dtype=np.intp)
        place[order] = np.arange(len(labels))
        return place[codes]


def _numbered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return labels ascending and without repetition, and the number of the label of each row."""
    starts = np.flatnonzero(values[1:] != values[:-1]) + 1
    if len(starts) < len(values) // 4:
        # All but the innermost dimension repeat each label: one of each run is enough.
        starts = np.concatenate([[0], starts])
        labels, codes = _numbered(values[starts])
        return labels, np.repeat(codes, np.diff(starts, append=len(values)))
    if values.dtype.kind not in "iufmM":
        labels, codes = np.unique(values, return_inverse=True)
        return labels, codes.reshape(-1)
    # xarray needs pandas, whose hash table takes a tenth of the time of numpy's sort.
    import pandas

    codes, labels = pandas.factorize(values.view("i8") if values.dtype.kind in "mM" else values, use_na_sentinel=False)
    order = np.argsort(labels, kind="stable")
    place = np.empty(len(labels), dtype=np.intp)
    place[order] = np.arange(len(labels))
    return labels[order].view(values.dtype), place[codes]


def _are_texts(values: np.ndarray) -> bool:
    return values.dtype == object and all(isinstance(value, str) for value in values)


class _Places:
    """The cells of rows."""

    def __init__(self, dims: list[str], axes: list[_Axis], rows: int) -> None:
        self.rows = rows
        # The cell of each row; `None` if rows and cells are in the same order.
        self.cells: np.ndarray | None = None
        if _set_regular(axes, rows):
            self.shape = tuple(len(axis.labels) for axis in axes)
            return
        codes = [axis.number() for axis in axes]
        self.shape = tuple(len(axis.labels) for axis in axes)
        self.size = _product(self.shape)
        if self.size > max(SMALL, SPARSE * rows):
            sizes = " × ".join(f"{dim} {length}" for dim, length in zip(dims, self.shape))
            raise ValueError(f"{rows} rows would become {self.size} cells ({sizes}); use fewer dimensions, or df()")
        self.cells = np.ravel_multi_index(codes, self.shape) if rows else np.zeros(0, dtype=np.intp)
        self._refuse_duplicates(axes)

    def _refuse_duplicates(self, axes: list[_Axis]) -> None:
        assert self.cells is not None
        has_row = np.zeros(self.size, dtype=bool)
        has_row[self.cells] = True
        self.is_full = self.rows == self.size
        if int(np.count_nonzero(has_row)) == self.rows:
            return
        ordered = np.sort(self.cells)
        cell = ordered[1:][ordered[1:] == ordered[:-1]][0]
        place = np.unravel_index(cell, self.shape)
        key = ", ".join(f"{axis.name} = {axis.labels[at]}" for axis, at in zip(axes, place))
        raise ValueError(
            f"two rows have the same labels: {key}; aggregate with GROUP BY {', '.join(axis.name for axis in axes)}, or name more dimensions"
        )

    def put(self, name: str, values: np.ndarray, mask: np.ndarray | None, fill: Any) -> np.ndarray:
        """Return the cells of a variable."""
        values = filled(name, values, mask, fill)
        if self.cells is None:
            return values.reshape(self.shape)
        if self.is_full:
            cells = np.empty(self.size, dtype=values.dtype)
        else:
            dtype, fill = _typed(name, values, _fill(name, values, fill, "has cells without a row"))
            cells = np.full(self.size, fill, dtype=dtype)
        cells[self.cells] = values
        return cells.reshape(self.shape)


def filled(name: str, values: np.ndarray, mask: np.ndarray | None, fill: Any) -> np.ndarray:
    """Return values with a fill value in the place of NULL."""
    if mask is None:
        return values
    dtype, fill = _typed(name, values, _fill(name, values, fill, "is NULL in a row"))
    values = values.astype(dtype, copy=True)
    values[mask] = fill
    return values


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for length in shape:
        product *= length
    return product


def _typed(name: str, values: np.ndarray, fill: Any) -> tuple[np.dtype, Any]:
    """Return the type that values and fill value share, and the fill value of this type."""
    if values.dtype == object:
        return values.dtype, fill
    try:
        if values.dtype.kind in "mM":
            if np.asarray(fill).dtype.kind not in "mMOU":
                raise TypeError
            return values.dtype, np.array(fill, values.dtype)[()]
        if np.asarray(fill).dtype.kind not in "biufc" or np.ndim(fill):
            raise TypeError
        # A Python number takes the type of the values if it fits; numpy's own rules for constants say so.
        dtype = np.result_type(values, fill)
        return dtype, np.array(fill, dtype)[()]
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the fill_value {fill!r} does not suit {name!r}, whose values are {values.dtype}") from error


def _fill(name: str, values: np.ndarray, fill: Any, why: str) -> Any:
    """Return the value of cells without one."""
    if fill is not None:
        return fill
    kind = values.dtype.kind
    if kind in "fc":
        return values.dtype.type(np.nan)
    if kind in "mM":
        return values.dtype.type("NaT")
    if kind == "O":
        return None
    raise ValueError(
        f"{name!r} {why}, and {values.dtype} has no missing value; give a fill_value, or CAST({name} AS DOUBLE) in the query"
    )


def _set_regular(axes: list[_Axis], rows: int) -> bool:
    """Whether the rows are a whole grid in row-major order with labels in the order of the array; sets the labels then."""
    labels: list[np.ndarray] = []
    step = 1
    for axis in reversed(axes):
        values = axis.values[::step]
        if not len(values):
            return False
        # The labels repeat where the first one returns.
        again = _first_again(values)
        if axis is axes[0] and again != len(values):
            return False
        labels.insert(0, values[:again])
        step *= again
        if rows % step:
            return False
    if step != rows:
        return False
    shape = [len(it) for it in labels]
    for at, (axis, own) in enumerate(zip(axes, labels)):
        if not axis.in_order(own):
            return False
        along = [-1 if it == at else 1 for it in range(len(axes))]
        if not (axis.values.reshape(shape) == own.reshape(along)).all():
            return False
    for axis, own in zip(axes, labels):
        axis.labels = own.copy()
    return True


def _first_again(values: np.ndarray) -> int:
    """Return the place of the first value that equals the value at 0, behind it; the length if there is none."""
    # Most dimensions are short: look at more and more values, not at all.
    start, width = 1, 1024
    while start < len(values):
        found = np.flatnonzero(values[start : start + width] == values[0])
        if len(found):
            return start + int(found[0])
        start, width = start + width, width * 4
    return len(values)
