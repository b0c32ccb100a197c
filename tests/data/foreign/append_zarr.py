"""Zarr stores that xarray and gridfusion append to in turn.

    python append_zarr.py make FOLDER     N/x.zarr with the first part of a dataset, N/1.zarr and N/3.zarr with later ones
    python append_zarr.py append FOLDER   xarray appends part 2 to each N/x.zarr
    python append_zarr.py check FOLDER    each N/x.zarr has all parts, as N/whole.zarr has them

FOLDER/tree is a store of groups: xarray makes "air" with the first part. gridfusion makes "sea/deep", and both append to both.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import xarray as xr
import zarr
from zarr.codecs import Crc32cCodec, GzipCodec, ZstdCodec

warnings.filterwarnings("ignore", category=UserWarning)
warnings.filterwarnings("ignore", message=".*(string|specification).*")

HOURS = {"units": "hours since 1999-12-31", "dtype": "int32"}


def dataset(number):
    """Returns a dataset, the encoding of its variables, and the dimension along which it grows."""
    rng = np.random.default_rng(number)
    times = np.arange(41)
    time = xr.date_range("2000-01-01", periods=41, freq="6h", calendar="noleap" if number == 3 else "standard",
                         use_cftime=number == 3)
    lat, lon = np.linspace(80, -80, 9), np.arange(7, dtype="f4") * 0.1
    cells = rng.normal(280, 20, (41, 9, 7))
    cells[rng.random(cells.shape) < 0.2] = np.nan
    coordinates = {"time": time, "lat": ("lat", lat, {"units": "degrees_north"}), "lon": lon}
    t = (("time", "lat", "lon"), cells.astype("f4"), {"units": "K", "scale": 0.1})
    packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}
    compressors = [
        None,
        [ZstdCodec(level=5), Crc32cCodec()],
        [GzipCodec(level=3)],
        [],
    ][number % 4]
    of_chunks = {"chunks": [(4, 5, 7), (7, 9, 3), (1, 2, 2), (64, 9, 7)][number % 4]}
    if compressors is not None:
        of_chunks["compressors"] = compressors
    if number == 0:
        return xr.Dataset({"t": t}, coordinates), {"t": of_chunks}, "time"
    if number == 1:
        sharded = {"chunks": (2, 3, 7), "shards": (8, 9, 7)}
        n = (t[0], rng.integers(0, 99, cells.shape).astype("i8"))
        return xr.Dataset({"t": t, "n": n}, coordinates), {"t": sharded, "n": of_chunks, "time": HOURS}, "time"
    if number == 2:
        warm = (t[0], cells > 280)
        return xr.Dataset({"t": t, "warm": warm}, coordinates), {"t": packed | of_chunks, "warm": of_chunks}, "time"
    if number == 3:
        count = (t[0], np.where(np.isnan(cells), np.nan, np.round(cells)))
        encoding = {"count": {"dtype": "i4", "_FillValue": -1} | of_chunks, "time": {"dtype": "float64"}}
        return xr.Dataset({"count": count}, coordinates), encoding, "time"
    names = np.array([f"station {at:02}" * (1 + at % 3) for at in times], dtype=object)
    notes = np.array([f"{at}é" for at in times * 2], dtype=object)
    stations = xr.Dataset({"v": (("station", "lat"), cells[:, :, 0]), "note": ("station", notes)},
                          {"station": names, "lat": lat})
    if number == 4:
        return stations[["v"]], {"v": {"chunks": (6, 4)}}, "station"
    if number == 6:
        # Bounds of times, and coordinates with a part of the dimensions.
        bounds = np.stack([time, time + np.timedelta64(6, "h")], axis=1)
        area = rng.random((9, 7))
        beside = {"month": ("time", time.month.to_numpy()), "area": (("lat", "lon"), area), "height": 2.0}
        data = xr.Dataset({"t": t, "time_bnds": (("time", "bnds"), bounds)}, coordinates | beside)
        data.time.attrs["bounds"] = "time_bnds"
        return data, {"t": of_chunks, "time_bnds": {"chunks": (4, 1)}}, "time"
    if number == 7:
        # Days, to which times of other hours are appended, and then of other minutes.
        hours = [24 * at if at < 11 else 240 + 6 * (at - 10) for at in times]
        minutes = [60 * hour + 7 * (at >= 18) for at, hour in zip(times, hours)]
        data = xr.Dataset({"t": t}, coordinates)
        data["time"] = np.datetime64("2000-01-01", "ns") + np.array(minutes, dtype="timedelta64[m]")
        data.time.attrs["long_name"] = "time of the analysis"
        of_time = {"units": "days since 1999-12-31", "dtype": "int64", "chunks": (4,)}
        return data, {"t": of_chunks, "time": of_time}, "time"
    # Along the second dimension.
    moved = xr.Dataset({"t": t}, coordinates).transpose("lat", "time", "lon")
    return moved, {"t": {"chunks": (4, 6, 7)}, "time": HOURS}, "time"


CASES, BOUNDS, GROUPS = 8, [0, 11, 17, 18, 41], ["air", "sea/deep"]


def part(number, at):
    data, encoding, dimension = dataset(number)
    return data.isel({dimension: slice(BOUNDS[at], BOUNDS[at + 1])}), encoding, dimension


def write(data, path, encoding):
    data.to_zarr(path, encoding=encoding, zarr_format=3, mode="w")


def make(folder):
    tree = folder / "tree"
    tree.mkdir()
    for at in [0, 1, 3]:
        write(part(0, at)[0], tree / f"{at}.zarr", {})
    xr.DataTree.from_dict({"air": part(0, 0)[0]}).to_zarr(tree / "x.zarr")
    for number in range(CASES):
        at = folder / str(number)
        at.mkdir()
        whole, encoding, dimension = dataset(number)
        write(whole, at / "whole.zarr", encoding)
        for of_part, name in [(0, "x"), (1, "1"), (3, "3")]:
            write(part(number, of_part)[0], at / f"{name}.zarr", encoding)
        query = f"SELECT {', '.join([*whole.sizes, *whole.data_vars])} FROM read_array('PART')"
        facts = {"query": WITH_BOUNDS if number == 6 else query, "times": "rewrite" if number == 7 else "refuse"}
        (at / "case.json").write_text(json.dumps(facts))


WITH_BOUNDS = """
    WITH bounds AS (
        SELECT time, array_agg(value ORDER BY bnds) AS time_bnds FROM read_array('PART', dataset => 'time_bnds') GROUP BY time
    )
    SELECT a.time, lat, lon, t, month, time_bnds
    FROM read_array('PART') a JOIN bounds ON a.time = bounds.time
"""


def append(folder):
    for number in range(CASES):
        data, _, dimension = part(number, 2)
        data.to_zarr(folder / str(number) / "x.zarr", append_dim=dimension)
    store = folder / "tree" / "x.zarr"
    for group in GROUPS:
        part(0, 2)[0].to_zarr(store, group=group, append_dim="time")
        # xarray gives the group consolidated metadata of its own.
        document = store / group / "zarr.json"
        metadata = json.loads(document.read_text())
        metadata.pop("consolidated_metadata", None)
        document.write_text(json.dumps(metadata))
    zarr.consolidate_metadata(store)


def check(folder):
    for number in range(CASES):
        found, wanted = (xr.open_zarr(folder / str(number) / f"{name}.zarr").load() for name in ["x", "whole"])
        xr.testing.assert_identical(found, wanted)
        # All metadata is of one age.
        separate = xr.open_zarr(folder / str(number) / "x.zarr", consolidated=False).load()
        xr.testing.assert_identical(separate, wanted)
    for consolidated in [True, False]:
        tree = xr.open_datatree(folder / "tree" / "x.zarr", engine="zarr", consolidated=consolidated)
        for group in GROUPS:
            # Attributes of columns are texts.
            same = xr.testing.assert_identical if group == "air" else xr.testing.assert_equal
            same(tree[group].to_dataset().load(), dataset(0)[0])
    print(CASES, "stores and a tree")


{"make": make, "append": append, "check": check}[sys.argv[1]](Path(sys.argv[2]))
