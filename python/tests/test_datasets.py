"""Datasets of xarray as tables. The expected values are those that xarray itself computes."""

from __future__ import annotations

import gc
import os
import weakref

import pytest

import gridfusion as gf
from gridfusion._reopened import reopened

np = pytest.importorskip("numpy")
xr = pytest.importorskip("xarray")


def dataset(shape=(5, 7, 4), dtype="f8") -> xr.Dataset:
    values = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    coords = {
        "time": np.datetime64("2024-01-01", "ns") + np.arange(shape[0]) * np.timedelta64(6, "h"),
        "lat": ("lat", np.linspace(60, 30, shape[1], dtype="f4"), {"units": "degrees_north"}),
        "city": [f"Ærø {it}" for it in range(shape[2])],
    }
    return xr.Dataset({"v": (("time", "lat", "city"), values, {"units": "K", "_FillValue": 3})}, coords)


def rows_of(data: xr.Dataset) -> list[tuple]:
    """The rows of a dataset, by the labels of its dimensions, as pandas makes them."""
    frame = data.to_dataframe().reset_index()
    return [tuple(None if it != it else it for it in row) for row in frame.itertuples(index=False)]


def test_aggregates_are_reductions(con):
    data = dataset()
    con.register("t", data)
    means = con.sql("SELECT lat, avg(v) AS v FROM t GROUP BY lat")
    assert "GridReduceExec" in means.explain() and "GridScanExec" not in means.explain()
    ours = means.xarray()["v"].sortby("lat", ascending=False)
    np.testing.assert_allclose(ours.values, data["v"].mean(["time", "city"]).values)
    assert ours.attrs["units"] == "K" and ours["lat"].attrs["units"] == "degrees_north"
    (row,) = con.sql("SELECT sum(v), count(*), min(time), max(city) FROM t WHERE lat < 50").fetchall()
    part = data["v"].where(data["lat"] < 50, drop=True)
    assert row == (float(part.sum()), part.size, data["time"].values[0].astype("M8[us]").item(), "Ærø 3")


def test_a_whole_dataset_comes_back(con):
    data = dataset()
    ours = con.register("t", data).table("t").xarray()
    assert list(ours["v"].dims) == ["time", "lat", "city"]
    assert (ours["v"].values == data["v"].values).all()
    for dim in data.dims:
        assert (ours[dim].values == data[dim].values).all()


def test_the_memory_is_shared(con):
    values = np.ones((400, 1000))
    data = xr.Dataset({"v": (("x", "y"), values)})
    con.register("t", data)
    assert con.sql("SELECT sum(v) FROM t").fetchall() == [(400_000.0,)]
    # Writing, which the notes of `register` forbid, shows that there is no copy.
    values[7, 3] = 5
    assert con.sql("SELECT sum(v) FROM t WHERE x = 7").fetchall() == [(1004.0,)]


def test_the_memory_lives_as_long_as_the_table(con):
    values = np.arange(100_000.0)
    gone = weakref.ref(values)
    con.register("t", xr.Dataset({"v": ("x", values)}))
    del values
    gc.collect()
    assert gone() is not None
    assert con.sql("SELECT sum(v) FROM t").fetchall() == [(99_999 * 50_000.0,)]
    con.unregister("t")
    con.sql("SELECT 1").fetchall()
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read in /proc")
def test_memory_does_not_grow_by_the_array(con):
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    values = np.ones((16, 1000, 1000))
    before = resident()
    con.register("t", xr.Dataset({"v": (("a", "b", "c"), values)}))
    assert con.sql("SELECT a, sum(v) FROM t GROUP BY a").shape == (16, 2)
    assert resident() - before < values.nbytes // 2


TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "bool", "M8[s]", "M8[ms]", "M8[us]", "M8[ns]", "m8[s]", "m8[ns]"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", ["C", "F", "strided", "big"])
def test_each_type_in_each_layout(con, dtype, layout):
    values = (np.arange(24) % 2 == 0 if dtype == "bool" else np.arange(24).astype(dtype)).reshape(4, 6)
    if layout == "F":
        values = np.asfortranarray(values)
    elif layout == "strided":
        values = np.repeat(values, 2, axis=1)[:, ::2]
    elif layout == "big":
        values = values.astype(values.dtype.newbyteorder(">"))
    con.register("t", xr.Dataset({"v": (("x", "y"), values)}))
    found = con.sql("SELECT v FROM t ORDER BY x, y").fetchnumpy()["v"]
    assert found.tolist() == values.reshape(-1).tolist() and found.dtype.kind == values.dtype.kind


def test_missing_values_are_null(con):
    data = xr.Dataset(
        {
            "v": ("x", [1.0, np.nan, 3.0]),
            "t": ("x", np.array(["2024-01-01", "NaT", "2024-01-03"], "M8[ns]")),
            "s": ("x", np.array(["a", None, ""], object)),
            "u": ("x", np.array(["ab", "", "Æ"])),
            "b": ("x", np.array([b"ab", b"", b"c"])),
        }
    )
    found = con.register("t", data).sql("SELECT x, v, t IS NULL, s, u, b FROM t ORDER BY x").fetchall()
    assert found == [(0, 1.0, False, "a", "ab", "ab"), (1, None, True, None, "", ""), (2, 3.0, False, "", "Æ", "c")]


def test_labels_in_any_order(con):
    data = xr.Dataset({"v": (("x", "name"), np.arange(6.0).reshape(2, 3))}, {"x": [5, 2], "name": ["b", "c", "a"]})
    found = con.register("t", data).sql("SELECT x, name, v FROM t").fetchall()
    assert sorted(found) == sorted(rows_of(data))
    assert con.sql("SELECT v FROM t WHERE x = 2 AND name = 'a'").fetchall() == [(5.0,)]


def test_datasets_without_dimensions_or_cells(con):
    assert con.register("one", xr.Dataset({"v": ((), 5.0)})).table("one").fetchall() == [(5.0,)]
    assert con.register("none", xr.Dataset({"v": ("x", np.empty(0))})).table("none").fetchall() == []


@pytest.mark.parametrize("seed", range(12))
def test_random_datasets(con, seed):
    """Shapes, chunks, layouts and coordinates of all kinds, against rows that pandas makes."""
    random = np.random.default_rng(seed)
    sizes = {f"d{at}": int(it) for at, it in enumerate(random.integers(1, 7, random.integers(1, 4)))}
    dims = tuple(sizes)
    data = xr.Dataset({name: (dims, random.integers(0, 99, tuple(sizes.values())).astype("f4")) for name in ("a", "b")})
    for dim in dims:
        if random.random() < 0.7:
            data = data.assign_coords({dim: random.permutation(sizes[dim]).astype(random.choice(["i4", "f8"]))})
    some = [dim for dim in dims if random.random() < 0.6][:: random.choice([1, -1])]
    data = data.assign_coords(extra=(some, random.random([sizes[dim] for dim in some])))
    if seed % 3 == 1:
        data["a"] = data["a"].copy(data=np.asfortranarray(data["a"].values))
    if seed % 3 == 2:
        pytest.importorskip("dask")
        data["b"] = data["b"].chunk({dim: int(random.integers(1, 4)) for dim in dims})
    con.register("t", data)
    columns = [*dims, "a", "b", "extra"]
    found = con.sql(f"SELECT {', '.join(columns)} FROM t").fetchall()
    frame = data.compute().to_dataframe().reset_index()[columns]
    assert sorted(found) == sorted(tuple(row) for row in frame.itertuples(index=False))
    dim = dims[-1]
    ours = dict(con.sql(f"SELECT {dim}, sum(b) FROM t WHERE a > 30 GROUP BY {dim}").fetchall())
    assert ours == frame[frame["a"] > 30].groupby(dim)["b"].sum().to_dict()


def test_dask_computes_what_a_query_reads(con):
    dask = pytest.importorskip("dask.array")
    computed = []

    def block(block_info=None):
        (where,) = [it["array-location"] for it in block_info.values()]
        computed.append(where[0][0])
        return np.ones([stop - start for start, stop in where])

    lazy = dask.map_blocks(block, chunks=((10,) * 8, (30,)), dtype="f8", meta=np.empty((0, 0)))
    computed.clear()
    con.register("t", xr.Dataset({"v": (("x", "y"), lazy)}))
    assert computed == [], "not when it is registered"
    assert con.sql("SELECT sum(v) FROM t WHERE x BETWEEN 20 AND 39").fetchall() == [(600.0,)]
    assert sorted(computed) == [20, 30]
    assert "GridReduceExec" in con.sql("SELECT x, sum(v) FROM t GROUP BY x").explain()


def test_errors_of_dask_are_told(con):
    dask = pytest.importorskip("dask.array")

    def fail(block):
        raise OSError("the sensor is gone")

    con.register("t", xr.Dataset({"v": ("x", dask.ones(10, chunks=5).map_blocks(fail, meta=np.empty(0)))}))
    with pytest.raises(gf.Error, match="t: .*its cells cannot be computed: OSError: the sensor is gone"):
        con.sql("SELECT sum(v) FROM t").fetchall()


@pytest.fixture
def opened(air):
    pytest.importorskip("netCDF4")
    with xr.open_dataset(air) as opened:
        yield opened[["t2m", "tp"]]


def test_a_file_that_xarray_opened_is_reopened(con, air, opened):
    rows = reopened(con, opened)
    assert rows is not None and rows.columns == ["time", "lat", "lon", "t2m", "tp"]
    con.register("air", opened)
    sql = "SELECT lat, avg(t2m), max(tp) FROM {} WHERE lon > 20 GROUP BY lat ORDER BY lat"
    assert con.sql(sql.format("air")).fetchall() == con.sql(sql.format(f"'{air}'")).fetchall()
    assert not opened["t2m"].variable._in_memory


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it.isel(time=slice(2, 9)),
        lambda it: it.isel(time=slice(None, None, -1)),
        lambda it: it.assign(t2m=it["t2m"] + 1),
        lambda it: it.rename(t2m="tp", tp="t2m"),
        lambda it: it.assign_coords(lat=it["lat"] + 1),
        lambda it: it.assign(t2m=it["t2m"].assign_attrs(units="degC")),
        lambda it: it.transpose("lon", "time", "lat"),
        lambda it: it.isel(lat=[0, 2]),
        lambda it: it.isel(lat=it["lat"].values > 0),
        lambda it: it.load(),
    ],
)
def test_a_file_whose_dataset_was_changed_is_not_reopened(con, opened, change):
    changed = change(opened)
    assert reopened(con, changed) is None
    con.register("changed", changed)
    found = con.sql("SELECT lat, sum(t2m) AS t2m FROM changed GROUP BY lat").xarray()["t2m"].sortby("lat")
    expected = changed["t2m"].astype("f8").sum(["time", "lon"]).sortby("lat")
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-6)
    assert (found["lat"].values == expected["lat"].values).all()


@pytest.mark.parametrize("options", [{"mask_and_scale": False}, {"decode_cf": False}, {"decode_times": False}])
def test_a_file_that_is_not_decoded_is_not_reopened(con, air, options):
    pytest.importorskip("netCDF4")
    with xr.open_dataset(air, **options) as opened:
        raw = opened[["t2m", "tp"]]
        assert reopened(con, raw) is None
        (row,) = con.register("raw", raw).sql("SELECT min(t2m), max(t2m), max(time) FROM raw").fetchall()
        assert row[:2] == (raw["t2m"].min(), raw["t2m"].max())


def test_files_that_xarray_has_not_loaded(con, air):
    pytest.importorskip("netCDF4")
    with xr.open_dataset(air) as opened:
        con.register("air", opened[["t2m", "tp"]].isel(lon=slice(0, 100)))
        assert not opened["t2m"].variable._in_memory
        means = con.sql("SELECT lat, avg(t2m) AS t2m FROM air GROUP BY lat")
        assert "GridReduceExec" in means.explain()
        expected = opened["t2m"].astype("f8").mean(["time", "lon"]).sortby("lat")
        np.testing.assert_allclose(means.xarray()["t2m"].sortby("lat").values, expected.values, rtol=1e-6)
        one = con.sql("SELECT t2m FROM air WHERE time = '2024-01-01' ORDER BY lat DESC, lon").fetchnumpy()["t2m"]
        np.testing.assert_allclose(one, opened["t2m"].sel(time="2024-01-01").values.reshape(-1), rtol=1e-6)
        assert not opened["t2m"].variable._in_memory


def test_what_is_refused(con):
    with pytest.raises(ValueError, match=r"a \(x\), b \(y\)"):
        con.register("t", xr.Dataset({"a": ("x", [1]), "b": ("y", [2])}))
    with pytest.raises(ValueError, match="no variable"):
        con.register("t", xr.Dataset())
    with pytest.raises(gf.DataError, match="'v' has values that Arrow lacks: complex128"):
        con.register("t", xr.Dataset({"v": ("x", [1j])}))
    with pytest.raises(gf.DataError, match="'v' has values that Arrow lacks, such as builtins.dict"):
        con.register("t", xr.Dataset({"v": ("x", np.array([{}, None], object))}))
    assert con.tables() == []


def test_texts_keep_all_their_letters(con):
    con.register("kept", xr.Dataset({"v": ("x", np.array(["a\0b", "", None], object))}))
    assert con.sql("SELECT v FROM kept").fetchall() == [("a\0b",), ("",), (None,)]
    with pytest.raises(gf.DataError, match="'v' has texts that end with the character NUL"):
        con.register("lost", xr.Dataset({"v": ("x", np.array(["a\0", "b"], object))}))
