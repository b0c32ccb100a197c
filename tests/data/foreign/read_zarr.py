"""Compares Zarr stores with the rows that they were written from.

    python read_zarr.py FOLDER

FOLDER has pairs of N.zarr and N.parquet. xarray must read each store without a warning, and zarr-python all of its arrays. Each row
must be a cell, and each other cell must be missing.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
import zarr

warnings.simplefilter("error")


def is_missing(value):
    return value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value))


def compare(store, rows):
    group = zarr.open_group(store, mode="r")
    with xr.open_zarr(store) as data:
        data.load()
        assert set(group.array_keys()) == set(data.variables), store
        dims = list(next(iter(data.data_vars.values())).dims)
        assert set(dims) | set(data.data_vars) == set(rows.columns), (dims, rows.columns)
        cells = data.to_dataframe(dim_order=dims)
        expected = rows.set_index(dims)
        expected = expected[~expected.index.duplicated()].reindex(cells.index)
        assert len(rows) == rows[dims].drop_duplicates().shape[0], store
        assert rows.set_index(dims).index.isin(cells.index).all(), store
        for name in data.data_vars:
            for found, wanted in zip(cells[name], expected[name]):
                if is_missing(wanted):
                    assert is_missing(found), (store, name, found)
                else:
                    assert found == wanted, (store, name, found, wanted)


def main(folder):
    stores = sorted(Path(folder).glob("*.zarr"))
    for store in stores:
        compare(str(store), pd.read_parquet(store.with_suffix(".parquet")))
    print(len(stores), "stores")


main(sys.argv[1])
