"""Relations as datasets of xarray. The expected arrays are those that xarray itself reads and computes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import gridfusion as gf

np = pytest.importorskip("numpy")
xr = pytest.importorskip("xarray")


@pytest.fixture(scope="session")
def opened(air):
    pytest.importorskip("netCDF4")
    with xr.open_dataset(air) as file:
        yield file.load()


def rows(con, text: str) -> gf.Relation:
    """The rows of a table in text: a header with types, and values."""
    header, *lines = (line.split() for line in text.strip().splitlines())
    values = ", ".join(f"({', '.join(line)})" for line in lines)
    names = [column.split(":") for column in header]
    casts = ", ".join(f"CAST({name}_ AS {kind}) AS {name}" for name, kind in names)
    return con.sql(f"SELECT {casts} FROM (VALUES {values}) AS t({', '.join(name + '_' for name, _ in names)})")


@pytest.mark.parametrize("order", ["", "ORDER BY time, lat DESC, lon", "ORDER BY lon DESC, time, lat"])
def test_a_whole_grid_is_what_xarray_reads(con, air, opened, order):
    ours = con.sql(f"SELECT time, lat, lon, t2m, tp FROM '{air}' {order}").xarray()
    theirs = opened[["t2m", "tp"]]
    for name in ["time", "lat", "lon"]:
        assert (ours[name].values == theirs[name].values).all(), name
    for name in ["t2m", "tp"]:
        assert ours[name].dims == theirs[name].dims
        np.testing.assert_allclose(ours[name].values, theirs[name].values, rtol=1e-6)
    assert {key: str(value) for key, value in ours["t2m"].attrs.items()}["units"] == theirs["t2m"].attrs["units"]
    assert ours["lat"].attrs["units"] == theirs["lat"].attrs["units"]
    assert "units" not in ours["time"].attrs, "xarray writes them itself"
    assert all(not key.startswith("gridfusion") for name in ours.variables for key in ours[name].attrs)


def test_a_dataset_can_be_written(con, air, opened, tmp_path):
    pytest.importorskip("netCDF4")
    con.sql(f"SELECT time, lat, lon, t2m FROM '{air}'").xarray().to_netcdf(tmp_path / "x.nc")
    with xr.open_dataset(tmp_path / "x.nc") as again:
        np.testing.assert_allclose(again["t2m"].values, opened["t2m"].values, rtol=1e-6)
        assert (again["time"].values == opened["time"].values).all()


def test_groups_are_those_of_xarray(con, air, opened):
    sql = f"SELECT date_part('month', time) AS month, lat, lon, avg(t2m) AS t2m FROM '{air}' GROUP BY month, lat, lon"
    relation = con.sql(sql)
    assert relation.dims == ["month", "lat", "lon"]
    ours, theirs = relation.xarray(), opened["t2m"].astype("f8").groupby("time.month").mean()
    assert list(ours["month"].values) == list(range(1, 13))
    assert (ours["lat"].values == opened["lat"].values).all(), "in the order of the file, which is down"
    np.testing.assert_allclose(ours["t2m"].transpose(*theirs.dims).values, theirs.values, rtol=1e-5)
    assert ours["t2m"].attrs["units"] == opened["t2m"].attrs["units"]


def test_windows_keep_the_grid(con, air, opened):
    sql = f"SELECT time, lat, lon, avg(t2m) OVER (PARTITION BY lat, lon ORDER BY time ROWS 2 PRECEDING) AS t2m FROM '{air}'"
    ours, theirs = con.sql(sql).xarray(), opened["t2m"].astype("f8").rolling(time=3, min_periods=1).mean()
    assert (ours["lat"].values == opened["lat"].values).all(), "in the order of the file, which is down"
    np.testing.assert_allclose(ours["t2m"].transpose(*theirs.dims).values, theirs.values, rtol=1e-5)
    assert ours["t2m"].attrs["units"] == opened["t2m"].attrs["units"]


def test_a_selection_keeps_the_order_of_the_file(con, air, opened):
    relation = con.sql(f"SELECT lat, lon, t2m FROM '{air}' WHERE lat IN (36, 60, -12) AND time = '2023-03-01' ORDER BY random()")
    ours = relation.xarray()
    theirs = opened["t2m"].sel(time="2023-03-01", lat=[60, 36, -12])
    xr.testing.assert_allclose(ours["t2m"].drop_attrs(), theirs.squeeze().drop_vars("time").drop_attrs(), rtol=1e-6)


def test_gaps_and_nulls(con):
    table = "x:INT y:TEXT v:DOUBLE n:INT t:TIMESTAMP s:TEXT\n1 'b' 1.5 1 '2024-01-01' 'p'\n2 'a' NULL 2 NULL NULL"
    relation = rows(con, table)
    with pytest.raises(ValueError, match="'n' has cells without a row, and int32"):
        relation.xarray(["x", "y"])
    filled = relation.xarray(["x", "y"], fill_value={"n": -1})
    assert filled["y"].values.tolist() == ["a", "b"] and filled["y"].dtype.kind == "U"
    assert np.isnan(filled["v"].values[0, 0]) and filled["v"].values[0, 1] == 1.5 and np.isnan(filled["v"].values[1, 0])
    assert filled["n"].values.tolist() == [[-1, 1], [2, -1]] and filled["n"].dtype == np.int32
    assert np.isnat(filled["t"].values).tolist() == [[True, False], [True, True]]
    assert filled["s"].isnull().values.tolist() == [[True, False], [True, True]] and filled["s"].values[0, 1] == "p"
    with pytest.raises(ValueError, match="'n' is NULL"):
        rows(con, "x:INT n:INT\n1 NULL\n2 5").xarray("x")
    assert rows(con, "x:INT n:INT\n1 NULL\n2 5").xarray("x", fill_value=9)["n"].values.tolist() == [9, 5]


def test_fill_values_that_do_not_suit(con):
    relation = rows(con, "x:INT y:INT n:TINYINT v:DOUBLE t:TIMESTAMP\n1 5 1 1.5 NULL\n2 6 2 NULL '2024-01-01'")
    for name, value in [("n", "many"), ("n", 1000), ("v", "i4"), ("t", 5), ("t", "soon"), ("n", [1, 2])]:
        with pytest.raises(ValueError, match=f"fill_value .* does not suit '{name}', whose values are "):
            relation.xarray(["x", "y"], fill_value={"n": -1} | {name: value})
    filled = relation.xarray(["x", "y"], fill_value={"n": 1.5, "v": 0, "t": "2020-02-02"})
    assert filled["n"].values[0, 1] == 1.5 and filled["v"].values[1].tolist() == [0, 0]
    assert (filled["t"].values[0] == np.datetime64("2020-02-02")).all()


def test_rows_without_dimensions(con):
    assert rows(con, "v:DOUBLE\n1.5").xarray(dims=[])["v"].values == 1.5
    for text in ["x:INT v:DOUBLE\n1 1.5\n2 2.5", "x:INT v:DOUBLE\n1 1.5\n1 1.5\n2 2.5"]:
        with pytest.raises(ValueError, match="rows need dimensions; name the dimensions"):
            rows(con, text).xarray(dims=[])


def test_casts_do_not_keep_what_is_wrong_behind_them(con, air, opened):
    sql = f"SELECT CAST(time AS BIGINT) AS time, lat, lon, t2m FROM '{air}'"
    assert con.sql(sql).dims == ["lat", "lon"]
    ours = con.sql(sql).xarray(["time", "lat", "lon"])
    assert not {"units", "calendar"} & set(ours["time"].attrs)
    assert (xr.decode_cf(ours)["time"].values == ours["time"].values).all()
    con.sql(sql).create_view("numbers")
    assert not {"units", "calendar"} & set(con.table("numbers").xarray(["time", "lat", "lon"])["time"].attrs)
    twice = f"SELECT time, CAST(CAST(lat AS INT) AS FLOAT) AS lat, lon, t2m FROM '{air}'"
    assert con.sql(twice).dims == ["time", "lon"]
    widened = con.sql(f"SELECT time, lat, lon, CAST(t2m AS DOUBLE) AS t2m FROM '{air}'").xarray()
    assert widened["t2m"].attrs["units"] == opened["t2m"].attrs["units"] and widened["t2m"].dtype == np.float64


def test_mistakes(con, air):
    twice = rows(con, "x:INT y:INT v:INT\n1 5 1\n2 6 2\n1 5 3")
    with pytest.raises(ValueError, match="x = 1, y = 5"):
        twice.xarray(["x", "y"])
    with pytest.raises(ValueError, match="no column of x, y, v is a dimension"):
        twice.xarray()
    with pytest.raises(ValueError, match="no column 'z'"):
        twice.xarray(["z"])
    with pytest.raises(ValueError, match="named twice"):
        twice.xarray(["x", "x"])
    with pytest.raises(ValueError, match="'x' is NULL"):
        rows(con, "x:INT v:INT\nNULL 1\n2 3").xarray(["x"])
    with pytest.raises(ValueError, match="cells"):
        con.sql("SELECT value AS a, value AS b, 1.0 AS v FROM generate_series(1, 50000)").xarray(["a", "b"])
    with pytest.raises(ValueError, match="time = "):
        con.sql(f"SELECT time, lat, t2m FROM '{air}'").xarray()


def test_edges(con, air):
    none = con.sql(f"SELECT lat, lon, t2m FROM '{air}' WHERE lat = 1").xarray()
    assert dict(none.sizes) == {"lat": 0, "lon": 0} and none["t2m"].shape == (0, 0)
    one = con.sql(f"SELECT lat, lon, avg(t2m) AS m FROM '{air}' WHERE lat = 60 AND lon = 30 GROUP BY lat, lon").xarray()
    assert dict(one.sizes) == {"lat": 1, "lon": 1}
    assert list(con.sql(f"SELECT DISTINCT lat FROM '{air}'").xarray().coords) == ["lat"]
    held = con.execute(f"SELECT lat, avg(t2m) AS m FROM '{air}' GROUP BY lat")
    assert held.xarray()["lat"].values[0] == 84.0, "rows in memory know their query"


@pytest.mark.parametrize("seed", range(8))
def test_random_grids(con, seed):
    """Against a dictionary from labels to values."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 6, size=random.integers(1, 4))
    names = [f"d{at}" for at in range(len(sizes))]
    keys = [tuple(int(it) for it in key) for key in np.ndindex(*sizes)]
    if seed % 2:
        keys = [key for key in keys if random.random() < 0.7] or keys[:1]
    if seed % 4 > 1:
        keys = [keys[at] for at in random.permutation(len(keys))]
    values = {key: float(random.integers(100)) for key in keys}
    lines = [" ".join(map(str, [*key, values[key]])) for key in keys]
    relation = rows(con, "\n".join([" ".join([*(f"{name}:INT" for name in names), "v:DOUBLE"]), *lines]))
    found = relation.xarray(names)["v"]
    for at, name in enumerate(names):
        assert found[name].values.tolist() == sorted({key[at] for key in keys})
    for place in np.ndindex(*found.shape):
        key = tuple(int(found[name].values[it]) for name, it in zip(names, place))
        assert found.values[place] == values[key] if key in values else np.isnan(found.values[place])


#: Queries that show a box of an array.
BOXES = [
    "SELECT time, lat, lon, t2m, tp FROM '{}'",
    "SELECT lon, t2m AS warm, lat, time AS t FROM '{}' ORDER BY lon DESC, lat, t",
    "SELECT * FROM '{}' WHERE lat BETWEEN 0 AND 60 AND time >= '2024-03-01' AND lon > 40",
    "SELECT lat, lon, t2m FROM '{}' WHERE lat IN (36, 60, -12) AND time = '2023-03-01'",
    "SELECT time, lat, lon, t2m - 273.15 AS celsius FROM '{}'",
]


def cells(relation):
    return relation._cells([relation.columns.index(dim) for dim in relation.dims])


@pytest.mark.parametrize("sql", BOXES)
def test_boxes_need_no_rows(con, air, sql):
    sql = sql.format(air)
    relation = con.sql(sql)
    assert cells(relation) is not None
    ours, rows = relation.xarray(), con.execute(sql).xarray()
    xr.testing.assert_identical(ours, rows)
    assert {name: it.dtype for name, it in ours.variables.items()} == {name: it.dtype for name, it in rows.variables.items()}
    turned = relation.dims[::-1]
    xr.testing.assert_identical(relation.xarray(turned), con.execute(sql).xarray(turned))
    timing = relation.timing
    assert timing["rows"] == next(iter(ours.data_vars.values())).size
    assert timing["chunks_read"] + timing["chunks_pruned"] == timing["chunks"]
    assert timing["bytes_read"] > 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT time, lat, lon, t2m FROM '{}' WHERE t2m > 300",
        "SELECT time, lat, lon, t2m FROM '{}' LIMIT 7",
        "SELECT time, lat, lon, t2m FROM '{}' WHERE lat > lon",
        "SELECT time, lat, t2m FROM '{}'",
        "SELECT DISTINCT lat FROM '{}'",
        "SELECT time, lat, lon, t2m, 'x' AS x FROM '{}'",
    ],
)
def test_other_queries_have_rows(con, air, sql):
    assert cells(con.sql(sql.format(air))) is None


def test_null_in_a_box(con):
    values = np.arange(12.0).reshape(3, 4)
    values[1, 2] = np.nan
    times = np.array(["2024-01-01", "NaT", "2024-01-03"], "M8[s]")
    data = xr.Dataset({"v": (("x", "y"), values), "t": ("x", times)}, {"x": ["b", "a", "c"]})
    con.register("grid", data[["v"]])
    con.register("line", data[["t"]])
    for table, fills in [("grid", [None, -1.0, {"v": 5}]), ("line", [None, "2020-02-02"])]:
        relation = con.table(table)
        assert cells(relation) is not None
        for fill in fills:
            xr.testing.assert_identical(relation.xarray(fill_value=fill), con.execute(f"SELECT * FROM {table}").xarray(fill_value=fill))
    assert np.isnan(con.table("grid").xarray()["v"].values[1, 2])


def test_labels_that_repeat_are_no_box(con):
    con.register("t", xr.Dataset({"v": ("x", [1.0, 2.0])}, {"x": [5, 5]}))
    assert cells(con.table("t")) is None
    with pytest.raises(ValueError, match="two rows have the same labels: x = 5"):
        con.table("t").xarray()


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read in /proc")
def test_a_box_takes_the_memory_of_its_cells(con):
    script = """
import numpy as np, xarray as xr, gridfusion as gf
def peak():
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmHWM"))
values = np.ones((16, 1000, 1000), "f4")
con = gf.connect().register("t", xr.Dataset({"v": (("a", "b", "c"), values)}))
con.sql("SELECT * FROM t WHERE a = 0 AND b = 0").xarray()
before = peak()
found = con.table("t").xarray()
assert found["v"].values.sum() == values.size
print((peak() - before) / values.nbytes)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert float(done.stdout or "nan") < 1.5, done.stderr


@pytest.mark.parametrize("dtype", ["i4", "u1", "f4", "f8", "datetime64[us]", "timedelta64[ns]", "bool", "U3"])
@pytest.mark.parametrize("run", [1, 3, 40])
def test_labels_are_numbered_as_numpy_does(dtype, run):
    from gridfusion._xarray import _numbered

    rng = np.random.default_rng(run)
    for count in [0, 1, 2, 3, 500]:
        values = np.repeat(rng.integers(0, 7, count), run).astype(dtype)
        if dtype in ("f4", "f8"):
            values[values == 3] = np.nan
            values[values == 5] = -0.0
        labels, codes = _numbered(values)
        expected, numbers = np.unique(values, return_inverse=True)
        np.testing.assert_array_equal(labels, expected)
        np.testing.assert_array_equal(codes, numbers)
        assert labels.dtype == values.dtype
