"""Columns that a query computes per cell of a box become arrays without rows. The expected arrays are those of the rows, and of numpy."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

import gridfusion as gf

np = pytest.importorskip("numpy")
xr = pytest.importorskip("xarray")


@pytest.fixture(scope="session")
def packed(tmp_path_factory) -> str:
    """A file with packed integers, NULL, times, and latitudes that go down, in several chunks along each axis."""
    pytest.importorskip("netCDF4")
    rng = np.random.default_rng(7)
    dims, shape = ("time", "lat", "lon"), (7, 5, 11)
    holes = rng.random(shape) < 0.2
    times = np.datetime64("2024-01-30", "us") + np.arange(7) * np.timedelta64(36, "h")
    data = xr.Dataset(
        {
            "t2m": (dims, np.where(holes, np.nan, np.round(rng.normal(280, 15, shape), 2)), {"units": "K"}),
            "v": (dims, np.where(rng.random(shape) < 0.1, np.nan, rng.normal(0, 3, shape)).astype("f4")),
            "w": (dims, rng.normal(0, 3, shape)),
            "n": (dims, rng.integers(-3, 4, shape).astype("i4")),
            "m": (dims, np.where(holes, np.nan, rng.integers(1, 9, shape))),
            "seen": (dims, np.datetime64("2024-01-01", "s") + rng.integers(0, 10**6, shape).astype("m8[s]")),
        },
        {"time": times, "lat": ("lat", np.linspace(60, -20, 5), {"units": "degrees_north"}), "lon": np.arange(11.0) * 30},
    )
    path = str(tmp_path_factory.mktemp("computed") / "packed.nc")
    chunks = {"chunksizes": (2, 3, 4)}
    encoding = {name: dict(chunks) for name in data.data_vars}
    encoding["t2m"] |= {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768}
    encoding["m"] |= {"dtype": "i2", "_FillValue": -1}
    data.to_netcdf(path, encoding=encoding, engine="netcdf4")
    return path


def cells(relation, dims=None):
    return relation._cells([relation.columns.index(dim) for dim in dims or relation.dims])


def check(con, sql: str, **options):
    """Return the cells of a query, which are those of its rows."""
    relation = con.sql(sql)
    assert cells(relation, options.get("dims")) is not None, "rows were made"
    ours, rows = relation.xarray(**options), con.execute(sql).xarray(**options)
    xr.testing.assert_identical(ours, rows)
    assert {name: it.dtype for name, it in ours.variables.items()} == {name: it.dtype for name, it in rows.variables.items()}
    assert list(ours.variables) == list(rows.variables) and list(ours.coords) == list(rows.coords)
    return ours


#: Expressions of one column.
EXPRESSIONS = [
    "t2m - 273.15",
    "t2m * cos(radians(lat))",
    "v * v + w * w",
    "sqrt(abs(w))",
    "CAST(t2m AS REAL)",
    "CAST(n AS DOUBLE) / 2",
    "coalesce(t2m, -1)",
    "CASE WHEN t2m > 290 THEN 1 ELSE 0 END",
    "CASE WHEN n <> 0 THEN 10 / n ELSE n END",
    "CASE WHEN lat > 1000 THEN 1 / (CAST(lat AS INT) - CAST(lat AS INT)) ELSE n END",
    "CASE WHEN CAST(time AS VARCHAR) LIKE '2024-02%' THEN lon ELSE v END",
    "date_part('month', time)",
    "date_part('month', time) * 100 + n",
    "date_trunc('hour', seen)",
    "seen - time",
    "time + INTERVAL '1 day'",
    "lat",
    "5",
    "CAST(NULL AS DOUBLE)",
    "CAST(n AS SMALLINT) % 2",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_computed_columns_need_no_rows(con, packed, expression):
    # Without these, bare labels are dimensions more.
    dims = ["time", "lat", "lon"]
    check(con, f"SELECT time, lat, lon, {expression} AS c FROM '{packed}'", dims=dims)
    sql = f"SELECT lon, {expression} AS c, w, lat, time, v + w AS d FROM '{packed}' WHERE lat < 50 AND lon > 80 ORDER BY w, c"
    check(con, sql, dims=dims)
    check(con, sql, dims=["lon", "time", "lat"])


def test_computed_columns_are_those_of_numpy(con, packed):
    sql = f"""SELECT time, lat, lon, t2m, t2m - 273.15 AS c, t2m * cos(radians(lat)) AS w, sqrt(v * v + w * w) AS speed,
        date_part('month', time) AS month, CASE WHEN t2m > 290 THEN 1 ELSE 0 END AS hot FROM '{packed}' WHERE lat < 50"""
    found = check(con, sql)
    with xr.open_dataset(packed) as file:
        expected = file.sel(lat=file["lat"] < 50).load()
    assert (found["lat"].values == expected["lat"].values).all() and found["lat"].values[0] > found["lat"].values[-1]
    np.testing.assert_allclose(found["t2m"], expected["t2m"])
    assert np.isnan(found["c"].values).any()
    np.testing.assert_allclose(found["c"], expected["t2m"] - 273.15)
    np.testing.assert_allclose(found["w"], expected["t2m"] * np.cos(np.radians(expected["lat"])))
    np.testing.assert_allclose(found["speed"], np.hypot(expected["v"].astype("f8"), expected["w"]))
    np.testing.assert_array_equal(found["month"], expected["time"].dt.month.broadcast_like(expected["w"]))
    np.testing.assert_array_equal(found["hot"], (expected["t2m"] > 290).astype("i8"))
    assert found["t2m"].attrs["units"] == "K" and not found["hot"].attrs


class Expression:
    """A random expression, in SQL and in numpy. NULL is NaN there."""

    def __init__(self, rng: random.Random, values: dict, depth: int) -> None:
        kind = rng.choice(["leaf", "+", "-", "*", "abs", "case", "sin"]) if depth else "leaf"
        parts = [Expression(rng, values, depth - 1) for _ in range({"leaf": 0, "abs": 1, "sin": 1, "case": 4}.get(kind, 2))]
        text, cells = [it.sql for it in parts], [it.cells for it in parts]
        if kind == "leaf":
            self.sql = rng.choice([*values, "1.5", "-2.0"])
            self.cells = values[self.sql] if self.sql in values else np.float64(self.sql)
        elif kind == "case":
            self.sql = f"CASE WHEN {text[0]} > {text[1]} THEN {text[2]} ELSE {text[3]} END"
            self.cells = np.where(cells[0] > cells[1], cells[2], cells[3])
        elif kind in ("abs", "sin"):
            self.sql, self.cells = f"{kind}({text[0]})", {"abs": np.abs, "sin": np.sin}[kind](cells[0])
        else:
            self.sql = f"({text[0]} {kind} {text[1]})"
            self.cells = {"+": np.add, "-": np.subtract, "*": np.multiply}[kind](cells[0], cells[1])


@pytest.mark.parametrize("seed", range(12))
def test_random_expressions(con, packed, seed):
    rng = random.Random(seed)
    with xr.open_dataset(packed) as file:
        file = file.load()
    # Doubles have one order of NaN and NULL only: there is no NaN without a NULL.
    values = {name: file[name].astype("f8").broadcast_like(file["w"]).values for name in ["w", "m", "lat", "lon"]}
    casts = ", ".join(f"CAST({name} AS DOUBLE) AS {name}" for name in ["w", "m"])
    inner = Expression(rng, values, 2)
    outer = [Expression(rng, values | {"x": np.broadcast_to(inner.cells, file["w"].shape)}, 3) for _ in range(3)]
    columns = ", ".join(f"{it.sql} AS c{at}" for at, it in enumerate(outer))
    sql = f"SELECT time, lat, lon, {columns} FROM (SELECT time, lat, lon, {casts}, {inner.sql} AS x FROM '{packed}')"
    found = check(con, sql, dims=["time", "lat", "lon"])
    for at, it in enumerate(outer):
        expected = np.broadcast_to(it.cells, file["w"].shape)
        np.testing.assert_allclose(found[f"c{at}"].values, expected, rtol=1e-9, atol=1e-9, err_msg=it.sql)


def test_null_of_integers_needs_a_value(con, packed):
    sql = f"SELECT time, lat, lon, CAST(m AS INT) + n AS c, m * 2.0 AS d, to_timestamp_seconds(CAST(m AS BIGINT)) AS t FROM '{packed}'"
    relation = con.sql(sql)
    assert cells(relation) is not None
    for fill in [None, {"d": 0}]:
        for made in [relation, con.execute(sql)]:
            with pytest.raises(ValueError, match="'c' is NULL in a row, and int32 has no missing value"):
                made.xarray(fill_value=fill)
    filled = check(con, sql, fill_value={"c": -99, "d": 0.5, "t": "2020-02-02"})
    assert filled["c"].dtype == np.int32 and (filled["c"].values == -99).any() and (filled["d"].values == 0.5).any()
    assert check(con, sql, fill_value={"c": -99})["t"].isnull().any()


def test_errors_are_those_of_rows(con, packed):
    for expression in ["1 / n", "CAST(n * 100 AS TINYINT)", "arrow_cast(n, 'UInt8')"]:
        sql = f"SELECT time, lat, lon, {expression} AS c FROM '{packed}'"
        with pytest.raises(gf.Error) as ours:
            cells(con.sql(sql))
        with pytest.raises(gf.Error) as rows:
            con.execute(sql)
        assert type(ours.value) is type(rows.value)
        # Threads meet different cells first.
        assert str(ours.value).split("value")[0] == str(rows.value).split("value")[0]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT time, lat, lon, w + random() AS c FROM '{}'",
        "SELECT time, lat, lon, c * 2 AS d FROM (SELECT time, lat, lon, random() AS c FROM '{}')",
        "SELECT time, lat, lon, w > 0 AS c FROM '{}'",
        "SELECT time, lat, lon, CAST(n AS VARCHAR) AS c FROM '{}'",
        "SELECT time, lat, lon, w - (SELECT avg(w) FROM '{}') AS c FROM '{}'",
        "SELECT time, lat, lon, w - avg(w) OVER () AS c FROM '{}'",
        "SELECT time, lat, lon, w - 1 AS c FROM '{}' WHERE w > 0",
        "SELECT time, lat, lon, w - 1 AS c FROM '{}' LIMIT 5",
    ],
)
def test_other_expressions_have_rows(con, packed, sql):
    relation = con.sql(sql.replace("{}", packed))
    assert cells(relation) is None
    assert relation.xarray()


def test_computed_dimensions_have_rows(con, packed):
    relation = con.sql(f"SELECT time, lat, (lon + 180) % 360 AS x, w * 2 AS c FROM '{packed}'")
    assert cells(relation) is None
    assert relation.xarray(["time", "lat", "x"])["c"].shape == (7, 5, 11)


def test_boxes_of_no_cells_and_of_one(con, packed):
    con.register("none", xr.Dataset({"v": (("x", "y"), np.empty((0, 3)))}, {"y": [3, 4, 5]}))
    for sql in [
        "SELECT x, y, v * y AS c, y + 1 AS d FROM none",
        "SELECT x, y, v FROM none",
        f"SELECT time, lat, lon, w * lat AS c FROM '{packed}' WHERE lat > 1000",
    ]:
        empty = con.sql(sql).xarray()
        xr.testing.assert_identical(empty, con.execute(sql).xarray())
        assert all(it.size == 0 for it in empty.variables.values())
    one = check(con, f"SELECT lat, lon, w * lat AS c FROM '{packed}' WHERE time = '2024-01-30' AND lat = 60 AND lon = 30")
    assert one["c"].shape == (1, 1)
    con.register("single", xr.Dataset({"v": ((), 4.0)}))
    assert check(con, "SELECT v * 2 AS c FROM single", dims=[])["c"].values == 8


def test_texts_and_labels_without_an_order(con):
    data = xr.Dataset({"v": (("s", "t"), np.arange(12.0).reshape(4, 3))}, {"s": ["d", "a", "c", "b"], "t": [3, 1, 2]})
    con.register("grid", data)
    found = check(con, "SELECT s, t, CASE WHEN s IN ('a', 'b') THEN v ELSE -v END AS c, length(s) + t AS d FROM grid")
    np.testing.assert_array_equal(found["c"], data["v"].where(data["s"].isin(["a", "b"]), -data["v"]))
    assert found["t"].values.tolist() == [3, 1, 2]


def test_files_and_indices(con, tmp_path):
    pytest.importorskip("netCDF4")
    for at in range(3):
        data = xr.Dataset({"v": (("t", "x"), np.arange(8.0).reshape(2, 4) + at)}, {"t": [2 * at, 2 * at + 1], "x": [4, 3, 2, 1]})
        data.to_netcdf(tmp_path / f"f{at}.nc")
    table = f"read_array('{tmp_path}/*.nc', file_column => true, index_columns => true)"
    found = check(con, f"SELECT t, x, CASE WHEN _file LIKE '%f1.nc' THEN v ELSE t_idx * 10 + x_idx END AS c FROM {table}")
    expected = [[10.0 * t + x if t not in (2, 3) else 4 * (t - 2) + x + 1 for x in range(4)] for t in range(6)]
    np.testing.assert_array_equal(found["c"].values, expected)


@pytest.mark.parametrize("shape", [(7, 70, 90), (90, 7, 70), (1, 50_001, 1), (40_000, 2)])
def test_parts_of_many_batches(con, shape):
    """Batches begin and end within rows of cells, and parts within the box."""
    pytest.importorskip("dask")
    rng = np.random.default_rng(3)
    dims = ("a", "b", "c")[: len(shape)]
    values = np.where(rng.random(shape) < 0.1, np.nan, rng.random(shape))
    labels = {dim: rng.permutation(length).astype("f8") for dim, length in zip(dims, shape)}
    data = xr.Dataset({"v": (dims, values), "n": (dims, rng.integers(-9, 9, shape))}, labels)
    con.register("t", data.chunk({dims[0]: max(3, shape[0] // 4)}))
    total = " + ".join(f"{dim} * {at + 2}" for at, dim in enumerate(dims))
    sql = f"SELECT *, v * 2 + {total} AS c0, CASE WHEN n > 0 THEN n END AS c1 FROM t WHERE b <> 3"
    found = check(con, sql, fill_value={"c1": -1})
    kept = data.sel(b=data["b"] != 3)
    expected = kept["v"] * 2 + sum(kept[dim] * (at + 2) for at, dim in enumerate(dims))
    for dim in dims:
        np.testing.assert_array_equal(found[dim], kept[dim])
    np.testing.assert_allclose(found["c0"], expected.transpose(*dims))
    np.testing.assert_array_equal(found["c1"], np.where(kept["n"] > 0, kept["n"], -1))


def test_many_projections(con, packed):
    """The work does not double with each of them."""
    con.sql(f"SELECT time, lat, lon, w AS c FROM '{packed}'").create_view("v0")
    for at in range(20):
        con.sql(f"SELECT time, lat, lon, c * 0.5 + sin(c) * sin(c) * {at} AS c FROM v{at}").create_view(f"v{at + 1}")
    assert check(con, "SELECT * FROM v20")["c"].shape == (7, 5, 11)
    long = " + ".join(["w"] * 300)
    check(con, f"SELECT time, lat, lon, {long} AS c FROM '{packed}'")


def test_a_variable_is_read_once(con, packed):
    def timing(columns: str) -> dict:
        relation = con.sql(f"SELECT time, lat, lon, {columns} FROM '{packed}' WHERE time >= '2024-02-01'")
        assert cells(relation) is not None
        return relation.timing

    plain, computed = timing("t2m, w"), timing("t2m, t2m - 273.15 AS c, w * t2m AS d, w")
    for name in ["rows", "chunks", "chunks_read", "chunks_pruned", "bytes_read"]:
        assert plain[name] == computed[name], name
    assert plain["bytes_read"] > 0 and plain["chunks_pruned"] > 0
    labels = timing("lat * lon AS c")
    assert labels["bytes_read"] == 0 and labels["chunks_read"] == 0


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read in /proc")
def test_computing_takes_the_memory_of_the_result(con):
    script = """
import numpy as np, xarray as xr, gridfusion as gf
def peak():
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmHWM"))
values = np.ones((64, 500, 1000), "f4")
con = gf.connect().register("t", xr.Dataset({"v": (("a", "b", "c"), values)}).chunk({"a": 1}))
con.sql("SELECT a, b, c, v + v AS w FROM t WHERE a = 0 AND b = 0").xarray()
before = peak()
found = con.sql("SELECT a, b, c, v + v * cos(radians(b)) AS w FROM t").xarray()
assert found["w"].shape == values.shape and found["w"].values[0, 0, 0] == 2
print((peak() - before) / found["w"].nbytes)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert float(done.stdout or "nan") < 1.7, done.stderr


def test_a_limit_of_memory_holds(packed):
    with gf.connect(memory_limit="2k") as con, pytest.raises(gf.Error, match=r"(?i)resources|memory"):
        con.sql(f"SELECT time, lat, lon, w + 1 AS c FROM '{packed}'").xarray()
