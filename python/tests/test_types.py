"""Every type of column with NULL, to each library; and tables of other libraries, to SQL."""

from __future__ import annotations

import datetime
import decimal

import pytest

import gridfusion as gf

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")

UTC = datetime.timezone.utc
DAY = datetime.date(2024, 2, 29)
TIME = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)

#: An Arrow type, two values, and the type that numpy gives them.
TYPES = [
    (pa.bool_(), [True, False], "bool"),
    (pa.int8(), [-128, 127], "int8"),
    (pa.int16(), [-(2**15), 2**15 - 1], "int16"),
    (pa.int32(), [-(2**31), 2**31 - 1], "int32"),
    (pa.int64(), [-(2**63), 2**63 - 1], "int64"),
    (pa.uint8(), [0, 255], "uint8"),
    (pa.uint16(), [0, 2**16 - 1], "uint16"),
    (pa.uint32(), [0, 2**32 - 1], "uint32"),
    (pa.uint64(), [0, 2**64 - 1], "uint64"),
    (pa.float16(), [1.5, -2.0], "float16"),
    (pa.float32(), [1.5, float("inf")], "float32"),
    (pa.float64(), [0.1, -0.0], "float64"),
    (pa.string(), ["", "Ærø"], "object"),
    (pa.large_string(), ["a", "b" * 50], "object"),
    (pa.string_view(), ["a", "b" * 50], "object"),
    (pa.binary(), [b"", b"\x00\xff"], "object"),
    (pa.binary(2), [b"ab", b"\x00\xff"], "object"),
    (pa.date32(), [DAY, datetime.date(1, 1, 1)], "datetime64[D]"),
    (pa.date64(), [DAY, datetime.date(1969, 12, 31)], "datetime64[ms]"),
    (pa.timestamp("s"), [TIME.replace(microsecond=0), datetime.datetime(1, 1, 1)], "datetime64[s]"),
    (pa.timestamp("ms"), [TIME.replace(microsecond=123000), datetime.datetime(9999, 12, 31)], "datetime64[ms]"),
    (pa.timestamp("us"), [TIME, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)], "datetime64[us]"),
    (pa.timestamp("ns"), [TIME, datetime.datetime(1700, 1, 1)], "datetime64[ns]"),
    (pa.timestamp("us", "UTC"), [TIME.replace(tzinfo=UTC), datetime.datetime(1950, 1, 1, tzinfo=UTC)], "datetime64[us]"),
    (pa.time32("s"), [datetime.time(0, 0, 1), datetime.time(23, 59, 59)], "object"),
    (pa.time32("ms"), [datetime.time(0, 0, 1), datetime.time(23, 59, 59, 5000)], "object"),
    (pa.time64("us"), [datetime.time(0, 0, 1), datetime.time(23, 59, 59, 999999)], "object"),
    (pa.time64("ns"), [datetime.time(0, 0, 1), datetime.time(23, 59, 59, 999999)], "object"),
    (pa.duration("s"), [datetime.timedelta(seconds=-5), datetime.timedelta(days=400)], "timedelta64[s]"),
    (pa.duration("ms"), [datetime.timedelta(seconds=-5), datetime.timedelta(days=400)], "timedelta64[ms]"),
    (pa.duration("us"), [datetime.timedelta(microseconds=-5), datetime.timedelta(days=400)], "timedelta64[us]"),
    (pa.duration("ns"), [datetime.timedelta(microseconds=-5), datetime.timedelta(days=400)], "timedelta64[ns]"),
    (pa.decimal128(10, 3), [decimal.Decimal("-1.250"), decimal.Decimal("1234567.891")], "object"),
    (pa.decimal256(50, 2), [decimal.Decimal("-1.25"), decimal.Decimal("1" * 40 + ".25")], "object"),
    (pa.list_(pa.int32()), [[], [1, None, 3]], "object"),
    (pa.large_list(pa.string()), [["a"], ["b", None]], "object"),
    (pa.list_(pa.float64(), 2), [[1.0, 2.0], [3.0, None]], "object"),
    (pa.struct([("a", pa.int32()), ("b", pa.string())]), [{"a": 1, "b": None}, {"a": None, "b": "x"}], "object"),
    (pa.dictionary(pa.int32(), pa.string()), ["a", "b"], "object"),
    (pa.null(), [None, None], "object"),
]


@pytest.mark.parametrize(("kind", "values", "numpy_kind"), TYPES, ids=[str(it[0]) for it in TYPES])
def test_each_type_with_null(con, kind, values, numpy_kind):
    given = [*values, None]
    table = pa.table({"n": pa.array([0, 1, 2]), "v": pa.array(given, kind)})
    con.register("t", table)
    relation = con.sql("SELECT v FROM t ORDER BY n")
    assert [row[0] for row in relation.fetchall()] == given
    arrow = relation.arrow()
    assert arrow.column("v").to_pylist() == given
    array = relation.fetchnumpy()["v"]
    assert array.dtype == np.dtype(numpy_kind)
    assert isinstance(array, np.ma.MaskedArray) and array.mask.tolist()[2]
    full = con.sql("SELECT v FROM t WHERE v IS NOT NULL ORDER BY n").fetchnumpy()["v"]
    assert not isinstance(full, np.ma.MaskedArray)
    if numpy_kind == "object" or full.dtype.kind in "biuf":
        assert full.tolist() == [it for it in values if it is not None]
    else:
        expected = pa.array(values, kind).to_numpy(zero_copy_only=False)
        assert (full == expected.astype(full.dtype)).all()
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = relation.df()
    assert isinstance(frame, pandas.DataFrame) and frame["v"].isna().tolist() == [it is None for it in given]
    # polars cannot read decimals of 256 bits, and makes times of dates of 64 bits.
    if kind != pa.decimal256(50, 2):
        frame = relation.pl()
        assert isinstance(frame, polars.DataFrame)
        assert kind == pa.date64() or frame["v"].to_list() == given


def test_intervals_and_maps(con):
    row = con.sql("SELECT INTERVAL '1 month 2 days 3 seconds' AS i, MAP {'a': 1, 'b': NULL} AS m").fetchall()[0]
    assert row == ((1, 2, 3_000_000_000), {"a": 1, "b": None})


def test_times_beyond_python(con):
    beyond = con.sql("SELECT arrow_cast(1000000000000, 'Timestamp(Second, None)') AS t")
    with pytest.raises(gf.DataError, match="1 to 9999"):
        beyond.fetchall()
    assert str(beyond.fetchnumpy()["t"][0]).startswith("33658-")


def test_numpy_shares_the_memory(con):
    array = con.sql("SELECT value AS v FROM generate_series(1, 5000)").fetchnumpy()["v"]
    assert not array.flags.owndata and not array.flags.writeable
    total = int(array.sum())
    assert total == 5000 * 5001 // 2, "also when the result is gone"


def test_no_rows(con):
    none = con.sql("SELECT 1 AS a, 'x' AS b WHERE false")
    assert none.fetchall() == [] and none.arrow().num_rows == 0 and none.df().empty and none.pl().is_empty()
    assert {name: len(it) for name, it in none.fetchnumpy().items()} == {"a": 0, "b": 0}
    assert none.shape == (0, 2) and list(none.batches()) == [] or sum(it.num_rows for it in none.batches()) == 0


def test_tables_of_other_libraries(con):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    expected = [("Oslo", 1.5, TIME), ("Bergen", None, None)]
    columns = {"Name": ["Oslo", "Bergen"], "v": [1.5, None], "t": [TIME, None]}
    batch = pa.record_batch({"Name": ["Oslo", "Bergen"], "v": [1.5, None], "t": pa.array([TIME, None], pa.timestamp("us"))})
    for data in [
        pandas.DataFrame(columns),
        polars.DataFrame(columns),
        pa.table(columns),
        batch,
        pa.RecordBatchReader.from_batches(batch.schema, [batch]),
        gf.connect().register("o", pa.table(columns)).table("o"),
    ]:
        assert con.register("stations", data) is con
        rows = con.sql('SELECT "Name", v, t FROM stations ORDER BY t NULLS LAST').fetchall()
        rows = [(name, None if v != v else v, t) for name, v, t in rows]
        assert rows == expected, type(data)
    assert con.tables() == ["stations"]
    assert con.sql("SELECT count(*) FROM stations a JOIN stations b USING (v)").fetchall() == [(1,)]
    for wrong in [5, "a.nc", {"a": [1]}, None]:
        with pytest.raises(TypeError, match="__arrow_c_stream__"):
            con.register("wrong", wrong)


def test_large_tables(con):
    n = 100_000
    con.register("t", pa.table({"n": np.arange(n), "s": [f"text {it % 100}" for it in range(n)]}))
    assert con.sql("SELECT count(*), sum(n), count(DISTINCT s) FROM t").fetchall() == [(n, n * (n - 1) // 2, 100)]
    assert con.sql("SELECT n FROM t ORDER BY n").fetchnumpy()["n"].tolist() == list(range(n))


def test_a_stream_that_fails(con):
    def batches():
        yield pa.record_batch({"a": [1]})
        raise OSError("the sensor is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
    with pytest.raises(gf.OperationalError, match="the rows cannot be read: .*the sensor is gone"):
        con.register("t", reader)
    assert con.tables() == []


def test_datasets_of_xarray(con, air):
    xr = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    with xr.open_dataset(air) as opened:
        con.register("air", opened[["t2m", "tp"]])
        con.register("sea_level", opened["t2m"].sel(lat=60).rename(None))
    for sql in ["SELECT count(*), count(DISTINCT time), min(lat), max(lon) FROM {}", "SELECT max(time) FROM {}"]:
        assert con.sql(sql.format("air")).fetchall() == con.sql(sql.format(f"'{air}'")).fetchall()
    means = "SELECT lat, avg(t2m) AS m FROM {} GROUP BY lat ORDER BY lat"
    ours, files = con.sql(means.format("air")).fetchnumpy(), con.sql(means.format(f"'{air}'")).fetchnumpy()
    assert ours["lat"].tolist() == files["lat"].tolist()
    np.testing.assert_allclose(ours["m"], files["m"], rtol=1e-6)
    assert con.sql("SELECT * FROM sea_level").columns == ["time", "lon", "value", "lat"]
    assert con.sql("SELECT DISTINCT lat FROM sea_level").fetchall() == [(60.0,)]


def test_coordinates_of_datasets(con):
    xr = pytest.importorskip("xarray")
    grid = np.arange(6.0).reshape(2, 3)
    coords = {"x": [1, 2], "height": 2.0, "name": ("x", ["a", "b"]), "area": (("y", "x"), grid.T * 10), "edges": ("nv", [0.0, 1.0])}
    data = xr.Dataset({"v": (("x", "y"), grid)}, coords)
    with pytest.warns(gf.Warning, match=r"left out: edges \(nv\)"):
        con.register("t", data)
    found = con.sql("SELECT x, y, v, height, name, area FROM t ORDER BY x, y").fetchall()
    assert found == [(x + 1, y, grid[x, y], 2.0, "ab"[x], grid[x, y] * 10) for x in range(2) for y in range(3)]
    assert sorted(con.table("t").columns) == ["area", "height", "name", "v", "x", "y"]


def test_dates_that_arrow_lacks(con):
    xr = pytest.importorskip("xarray")
    cftime = pytest.importorskip("cftime")
    days = [cftime.datetime(2001, 2, day, calendar="360_day") for day in (29, 30)]
    with pytest.raises(gf.DataError, match="'time' has values that Arrow lacks, such as cftime.*convert_calendar") as error:
        con.register("t", xr.Dataset({"v": ("time", [1.0, 2.0])}, {"time": days}))
    assert isinstance(error.value, ValueError)


def test_indexes_of_pandas(con):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"city": ["a", "b", "a"], "year": [1, 1, 2], "v": [1.0, 2.0, 3.0]})
    con.register("means", frame.groupby(["city", "year"]).mean())
    assert con.sql("SELECT city, year, v FROM means ORDER BY v").fetchall() == [("a", 1, 1.0), ("b", 1, 2.0), ("a", 2, 3.0)]
    assert con.register("plain", frame).table("plain").columns == ["city", "year", "v"]


def test_arguments_of_numpy(con, air):
    assert con.read_array(air, np.str_("t2m"), index_columns=np.bool_(True)).columns[-1] == "lon_idx"
    from gridfusion._sql import literal

    values = [np.float32(1.5), np.float64(-2.0), np.int16(7), np.array(3), True, 10**30, 1e300, [np.int8(1), "a'b"]]
    assert [literal(it) for it in values] == ["1.5", "-2.0", "7", "3", "true", str(10**30), "1e+300", "[1, 'a''b']"]
    for wrong in [float("nan"), np.float32("inf"), [-float("inf")]]:
        with pytest.raises(gf.ProgrammingError, match="finite"):
            literal(wrong)
    for wrong in [np.arange(2), None, np.datetime64("2001-01-01")]:
        with pytest.raises(gf.ProgrammingError, match="an argument is"):
            literal(wrong)


def test_a_series_is_a_table_of_a_column(con):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    for data, columns in [
        (pandas.Series([1, 2]), ["value"]),
        (pandas.Series([1, 2], name="v", index=pandas.Index([4, 5], name="k")), ["k", "v"]),
        (polars.Series([1, 2]), ["value"]),
        (polars.Series("v", [1, 2]), ["v"]),
    ]:
        table = con.register("t", data).table("t")
        assert table.columns == columns and [row[-1] for row in table.fetchall()] == [1, 2]
    with pytest.raises(TypeError, match="ChunkedArray"):
        con.register("t", pyarrow.chunked_array([[1]]))


@pytest.mark.parametrize("value", ["INTERVAL '1 day'", "[INTERVAL '1 day']"])
def test_polars_has_no_intervals(con, value):
    pytest.importorskip("polars")
    with pytest.raises(gf.NotSupportedError, match="'span'"):
        con.sql(f"SELECT {value} AS span").pl()
