"""Reads stores with groups that gridfusion wrote: each FOLDER/N.zarr has forecast/daily and forecast/hourly.

    python read_groups.py FOLDER
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import xarray as xr
import zarr

warnings.filterwarnings("ignore", message=".*specification.*")

stores = sorted(Path(sys.argv[1]).glob("*.zarr"))
for store in stores:
    root = zarr.open_group(store, mode="r")
    is_consolidated = root.metadata.consolidated_metadata is not None
    assert is_consolidated == (store.name != "1.zarr"), store
    for group in ["daily", "hourly"]:
        for consolidated in {False, is_consolidated}:
            data = xr.open_zarr(store, group=f"forecast/{group}", consolidated=consolidated,
                                mask_and_scale=False).load()
            expected = 100 * np.arange(3)[:, None] + np.arange(4)[None, :]
            assert data.v.dims == ("x", "y") and np.array_equal(data.v, expected), store
            assert np.array_equal(data.w, expected + 7) and np.array_equal(data.x, [50, 51, 52]), store
        assert sorted(root[f"forecast/{group}"].array_keys()) == ["v", "w", "x", "y"], store
    tree = xr.open_datatree(store, engine="zarr", mask_and_scale=False, consolidated=is_consolidated)
    assert {"/forecast/daily", "/forecast/hourly"} <= set(tree.groups), store
    assert np.array_equal(tree["forecast/hourly"].v, expected), store
print(len(stores), "stores")
