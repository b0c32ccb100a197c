"""Zarr stores without consolidated metadata, in Blosc, that gridfusion appends to.

    python append_blosc.py make FOLDER     N.zarr with x from 50 to 52, as zarr-python writes it
    python append_blosc.py check FOLDER    each N.zarr has x from 50 to 56, as zarr-python and xarray read it; new.zarr, too
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec

SETTINGS = [
    [BloscCodec()],
    [BloscCodec(cname="lz4", clevel=9, shuffle="shuffle")],
    [BloscCodec(cname="lz4hc", clevel=3, shuffle="bitshuffle", blocksize=512)],
    [BloscCodec(cname="zlib", clevel=1), Crc32cCodec()],
    [BloscCodec(cname="zstd", clevel=0, shuffle="noshuffle")],
    [BloscCodec(cname="zstd", clevel=9, typesize=2)],
]


def cells(variable, x, y):
    return 100 * np.asarray(x)[:, None] + np.asarray(y)[None, :] + 7 * variable


def make(folder):
    x, y = np.arange(3), np.arange(4)
    for number, compressors in enumerate(SETTINGS):
        group = zarr.create_group(folder / f"{number}.zarr", zarr_format=3)

        def put(name, data, chunks, dimensions, **more):
            array = group.create_array(name, shape=data.shape, dtype=data.dtype, chunks=chunks, fill_value=0,
                                       dimension_names=dimensions, compressors=compressors, **more)
            array[...] = data

        sharded = {"shards": (4, 6)} if number % 2 else {}
        put("v", cells(0, x, y).astype("f8"), (2, 3), ("x", "y"), **sharded)
        put("w", cells(1, x, y).astype("i8"), (2, 3), ("x", "y"))
        put("x", x + 50, (1024,), ("x",))
        put("y", y, (1024,), ("y",))
        assert group.metadata.consolidated_metadata is None


def check(folder):
    x, y = np.arange(7), np.arange(4)
    names = [f"{number}.zarr" for number in range(len(SETTINGS))] + ["new.zarr"]
    for name in names:
        for read in [
            zarr.open_group(folder / name, mode="r", use_consolidated=False),
            xr.open_zarr(folder / name, consolidated=False, mask_and_scale=False).load(),
        ]:
            assert np.array_equal(np.asarray(read["x"][:]), x + 50), name
            for variable, of in enumerate(["v", "w"]):
                assert np.array_equal(np.asarray(read[of][:]), cells(variable, x, y)), (name, of)
    print(len(names), "stores")


{"make": make, "check": check}[sys.argv[1]](Path(sys.argv[2]))
