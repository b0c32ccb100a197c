"""Compares TileDB arrays with the rows that they were written from.

    python read_tiledb.py FOLDER

FOLDER has pairs of N.tdb and N.parquet. TileDB must read each array. Each row must be a cell, and each other cell must be missing. The
labels of a dimension are its coordinates, or the dimension label of the same name, if the dimension is called NAME_index.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import tiledb


def is_missing(value):
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)) and pd.isna(value)


def plain(value):
    """Returns a value in the form in which values of Parquet and of TileDB are equal."""
    if isinstance(value, (np.datetime64, pd.Timestamp)) or hasattr(value, "isoformat"):
        return pd.Timestamp(value).tz_localize(None).as_unit("ns")
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, np.generic) else value


def labels_of(uri, array, axis):
    """Returns the name and the labels of a dimension."""
    dimension = array.schema.domain.dim(axis)
    name = dimension.name.removesuffix("_index")
    if name != dimension.name and array.schema.has_dim_label(name):
        label = array.schema.dim_label(name)
        with tiledb.open(f"{uri}/__labels/{Path(label.uri).name}") as labels:
            low, high = labels.nonempty_domain()[0]
            values = labels[int(low) : int(high) + 1]
        values = values["label"] if isinstance(values, dict) else values
        ordered = list(values) if label.order == "increasing" else list(values)[::-1]
        assert ordered == sorted(ordered), (uri, name, values)
        if label.dtype.kind not in "SU" and array.schema.domain.ndim == 1:
            found = array.label_index([name])[min(values) : max(values)]
            assert list(found[name]) == list(values), (uri, name)
    else:
        name = dimension.name
        low, high = array.nonempty_domain()[axis]
        step = 1
        if dimension.dtype.kind == "M":
            step = np.timedelta64(1, np.datetime_data(dimension.dtype)[0])
        values = [low + step * at for at in range(int((high - low) / step) + 1)]
    return name, [plain(value) for value in values]


def cells_of(values):
    """Returns the cells of an attribute; None for those that are missing."""
    missing = np.ma.getmaskarray(values).ravel()
    values = np.ma.getdata(values).ravel()
    return [None if hidden or is_missing(it) else plain(it) for it, hidden in zip(values, missing)]


def compare(uri, rows):
    with tiledb.open(uri) as array:
        axes = [labels_of(uri, array, axis) for axis in range(array.schema.domain.ndim)]
        cells = array[:]
        if not isinstance(cells, dict):
            cells = {array.schema.attr(0).name: cells}
    names = [name for name, _ in axes]
    assert set(names) | set(cells) == set(rows.columns), (uri, names, list(cells), rows.columns)
    index = pd.MultiIndex.from_product([values for _, values in axes], names=names)
    places = {key: at for at, key in enumerate(index)}
    assert len(places) == len(index), uri
    found = {name: cells_of(cells[name]) for name in cells}
    written = set()
    for row in rows.itertuples(index=False):
        row = dict(zip(rows.columns, row))
        at = places[tuple(plain(row[name]) for name in names)]
        assert at not in written, (uri, row)
        written.add(at)
        for name, values in found.items():
            wanted = None if is_missing(row[name]) else plain(row[name])
            assert values[at] == wanted, (uri, name, row, values[at])
    for at in set(range(len(index))) - written:
        assert all(values[at] is None for values in found.values()), (uri, index[at])


def main(folder):
    arrays = sorted(Path(folder).glob("*.tdb"))
    for array in arrays:
        compare(str(array), pd.read_parquet(array.with_suffix(".parquet"), dtype_backend="pyarrow"))
    print(len(arrays), "arrays")


main(sys.argv[1])
