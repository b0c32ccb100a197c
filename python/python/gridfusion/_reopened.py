"""Datasets that xarray opened from a file and has not loaded: we read the file ourselves, if the dataset is what the file has.

xarray keeps a variable that it has not loaded as layers of lazy arrays over one of the file. A variable is that of the file if it has the same
name, its layers select all cells, and they do no more than decode. It is what we read if its type, attributes and labels are ours.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ._relation import numpy_column
from ._sql import name as quoted_name
from .errors import Error

if TYPE_CHECKING:
    import xarray

    from ._connection import Connection
    from ._relation import Relation

#: The layers of xarray that select cells, keep them, or decode what the file declares.
LAYERS = {"MemoryCachedArray", "CopyOnWriteArray", "LazilyIndexedArray", "_ElementwiseFunctionArray", "NativeEndiannessArray"}
#: Attributes that xarray removes when it decodes values, or that only we apply.
DECODED = {"_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "valid_min", "valid_max", "valid_range"}


def reopened(con: Connection, data: xarray.Dataset | xarray.DataArray) -> Relation | None:
    """Return the rows of the file of a dataset; ``None`` unless the dataset is known to be the same."""
    import xarray

    source = data.encoding.get("source") if isinstance(data, xarray.Dataset) else None
    if not isinstance(source, str) or not os.path.isfile(source) or not data.data_vars:
        return None
    dims = next(iter(data.data_vars.values())).dims
    names = [str(it) for it in (*dims, *data.data_vars, *(name for name in data.coords if name not in dims))]
    variables = [name for name in data.variables if name not in dims]
    if not all(_is_of_file(data.variables[name], str(name), source) for name in variables):
        return None
    try:
        rows = con.read(source)
        if not set(names) <= set(rows.columns):
            return None
        rows = con._rows_of(f"SELECT {', '.join(map(quoted_name, names))} FROM ({con._text_of_read(source)})")
        return rows if _is_same(rows, data, dims) else None
    except Error:
        # xarray has opened the file, so that reading it through xarray works.
        return None


def _is_of_file(variable: xarray.Variable, name: str, source: str) -> bool:
    """Whether a variable is lazy, and all of the one that the file has under this name."""
    array = getattr(variable, "_data", None)
    while type(array).__name__ in LAYERS:
        key = getattr(array, "key", None)
        if key is not None and any(not isinstance(it, slice) or it != slice(None) for it in key.tuple):
            return False
        array = getattr(array, "array", None)
    store = getattr(array, "datastore", None)
    is_root = getattr(store, "_group", "unknown") in (None, "", "/")
    is_of_source = getattr(store, "_filename", None) == source and variable.encoding.get("source") == source
    return is_root and is_of_source and getattr(array, "variable_name", None) == name and not DECODED & set(variable.attrs)


def _is_same(rows: Relation, data: xarray.Dataset, dims: tuple[Any, ...]) -> bool:
    """Whether the columns have the types and attributes of the variables, and the labels of the dimensions."""
    query = rows._query
    assert query is not None, "a query of a file"
    facts, none = rows._facts(), query.limit(0).collect()
    for at, column in enumerate(rows.columns):
        if at < len(dims):
            labels = query.labels(at)
            expected = data[dims[at]].values if dims[at] in data.coords else np.arange(data.sizes[dims[at]])
            if labels is None or not np.array_equal(numpy_column(labels, 0)[0], expected):
                return False
        elif numpy_column(none, at)[0].dtype != data.variables[column].dtype:
            return False
        attributes = data[column].attrs if column in data.variables else {}
        if any(facts[at][2].get(str(key)) != str(value) for key, value in attributes.items()):
            return False
    return True
