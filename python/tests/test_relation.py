"""Each method of relations and connections."""

from __future__ import annotations

import datetime
import inspect

import pytest

import gridfusion as gf

MEANS = "SELECT lat, avg(t2m) AS t2m FROM '{}' WHERE lat BETWEEN 36 AND 60 GROUP BY lat ORDER BY lat"


@pytest.fixture
def means(con, air):
    return con.sql(MEANS.format(air))


@pytest.fixture(scope="session")
def expected(air):
    """The same means, as netCDF4 reads the file."""
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(air) as file:
        lat = file["lat"][:]
        values = file["t2m"][:].astype("f8")
        rows = [(float(lat[at]), float(values[:, at, :].mean())) for at in range(len(lat)) if 36 <= lat[at] <= 60]
    return sorted(rows)


def test_what_a_relation_is(means, con, air):
    assert means.columns == ["lat", "t2m"]
    assert means.types[0] == "Float32" and means.types[1] in ("Float32", "Float64")
    assert means.shape == (3, 2)
    assert means.dims == ["lat"]
    assert con.sql(f"SELECT lon, time, t2m FROM '{air}'").dims == ["lon", "time"]
    windows = con.sql(f"SELECT time, lat, lon, t2m, avg(t2m) OVER (PARTITION BY lat, lon ORDER BY time ROWS 2 PRECEDING) AS mean FROM '{air}'")
    assert windows.dims == ["time", "lat", "lon"]
    assert con.sql("SELECT 1 AS one").dims == []
    assert repr(means) == f"<gridfusion.Relation: lat Float32 (dimension), t2m {means.types[1]}>"


def test_rows_are_those_of_the_file(means, expected):
    rows = means.fetchall()
    assert [lat for lat, _ in rows] == [lat for lat, _ in expected]
    assert [mean for _, mean in rows] == pytest.approx([mean for _, mean in expected])
    assert means.fetchall() == rows, "a relation can be read again"


def test_all_libraries_get_the_same_rows(means):
    rows = means.fetchall()
    pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    numpy, duckdb = pytest.importorskip("numpy"), pytest.importorskip("duckdb")
    assert [tuple(row.values()) for row in means.arrow().to_pylist()] == rows
    assert [tuple(row) for row in means.df().itertuples(index=False)] == rows
    assert means.pl().rows() == rows
    arrays = means.fetchnumpy()
    assert list(arrays) == ["lat", "t2m"] and arrays["lat"].dtype == numpy.float32
    assert list(zip(arrays["lat"].tolist(), arrays["t2m"].tolist())) == rows
    assert pyarrow.table(means).num_rows == 3, "by the C stream"
    assert polars.DataFrame(means).rows() == rows
    assert duckdb.sql("SELECT * FROM means ORDER BY lat").fetchall() == rows
    assert sum(batch.num_rows for batch in means.batches()) == 3
    assert pyarrow.schema(means) == means.schema and means.schema.names == ["lat", "t2m"]


def test_the_rows_are_those_of_the_program(program, con, air, data):
    for sql in [
        MEANS.format(air),
        f"SELECT time, lat, lon, t2m, tp FROM '{air}' WHERE lat = 60 ORDER BY time, lon",
        f"SELECT * FROM '{data / 'stations.tet'}#temperature' ORDER BY time, station LIMIT 100",
        f"SELECT count(*) AS n FROM '{data / 'sea.zarr'}'",
        f"SELECT * FROM array_info('{data / 'climate.tet'}')",
        f"SUMMARIZE '{air}'",
        f"DESCRIBE '{air}'",
    ]:
        ours = [dict(zip(relation.columns, row)) for relation in [con.sql(sql)] for row in relation.fetchall()]
        theirs = program(sql)
        assert len(ours) == len(theirs), sql
        for our, their in zip(ours, theirs):
            for column, value in their.items():
                assert same(our[column], value), (sql, column, our[column], value)


def same(ours, theirs) -> bool:
    """Whether a value is the one in JSON."""
    if isinstance(ours, float) and theirs is not None:
        return ours == pytest.approx(theirs, rel=1e-6)
    if isinstance(ours, (datetime.datetime, datetime.date)):
        return theirs.startswith(ours.isoformat()[:10])
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return ours == theirs


def test_fetchone_goes_on_and_begins_again(con):
    rows = con.sql("SELECT * FROM generate_series(1, 20000) AS t(n) ORDER BY n")
    first = [rows.fetchone() for _ in range(20001)]
    assert first == [(n,) for n in range(1, 20001)] + [None]
    assert rows.fetchone() == (1,)
    held = con.execute("SELECT 5 AS five")
    assert [held.fetchone(), held.fetchone(), held.fetchone()] == [(5,), None, (5,)]


def test_execute_keeps_rows(con):
    con.execute("CREATE TABLE t AS SELECT 1 AS x")
    held, lazy = con.execute("SELECT * FROM t"), con.sql("SELECT * FROM t")
    con.execute("DROP TABLE t; CREATE TABLE t AS SELECT 2 AS x")
    assert held.fetchall() == [(1,)]
    assert lazy.fetchall() == [(1,)], "a plan has its tables"
    assert con.sql("SELECT * FROM t").fetchall() == [(2,)]
    assert held.dims == [] and held.shape == (1, 1)


def test_statements(con, tmp_path):
    assert con.sql("CREATE VIEW v AS SELECT 7 AS seven") is None
    assert con.sql("SELECT 1; SELECT seven FROM v;").fetchall() == [(7,)]
    assert con.sql("") is None
    with pytest.raises(gf.DataError):
        con.sql("SELECT 1 / 0; SELECT 2")
    assert "ProjectionExec" in con.sql("EXPLAIN SELECT 1").fetchall()[1][1]
    assert con.tables() == ["v"]
    count = con.sql(f"COPY v TO '{tmp_path / 'v.csv'}'")
    assert count.fetchall() == [(1,)] and (tmp_path / "v.csv").read_text() == "seven\n7\n"


def test_explain_and_show(means, capsys, con):
    assert "GridReduceExec" in means.explain() and "elapsed_compute" not in means.explain()
    assert "elapsed_compute" in means.explain(analyze=True)
    means.show()
    shown = capsys.readouterr().out
    assert shown.startswith("+------+") and shown.count("\n") == 7 and "| 36.0 |" in shown
    con.sql("SELECT * FROM generate_series(1, 100)").show(3)
    shown = capsys.readouterr().out
    assert "| 3 " in shown and "| 4 " not in shown and "| . " in shown


def test_a_notebook_shows_ten_rows(con, air):
    shown = con.sql(f"SELECT lat, t2m, '<b>' AS text, NULL AS nothing FROM '{air}'")._repr_html_()
    assert shown.count("<tr>") == 11 and "The first 10 rows" in shown
    assert "<strong>lat</strong>" in shown and "<strong>t2m" not in shown
    assert "&lt;b&gt;" in shown and "<b>" not in shown and "<em>NULL</em>" in shown
    # Not the whole query: these rows would take days.
    endless = con.sql("SELECT * FROM generate_series(1, 1000000000000)")
    assert endless._repr_html_().count("<tr>") == 11
    wrong = con.sql("SELECT 1 / (value - 1) FROM generate_series(1, 2)")
    assert wrong._repr_html_().startswith("<pre>DataError")


def test_files(con, means, tmp_path):
    pyarrow_parquet = pytest.importorskip("pyarrow.parquet")
    rows = means.fetchall()
    assert means.to_parquet(tmp_path / "m.parquet", compression="zstd(3)") == 3
    file = pyarrow_parquet.ParquetFile(tmp_path / "m.parquet")
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert [tuple(row.values()) for row in file.read().to_pylist()] == rows
    assert means.to_csv(str(tmp_path / "m.csv")) == 3
    assert (tmp_path / "m.csv").read_text().splitlines()[0] == "lat,t2m"
    assert con.execute("SELECT 'it''s' AS x").to_json(tmp_path / "it's.json") == 1
    assert (tmp_path / "it's.json").read_text() == '{"x":"it\'s"}\n'
    assert con.execute("SELECT 1 AS x UNION ALL SELECT 2 ORDER BY x DESC").to_csv(tmp_path / "x.csv") == 2
    assert (tmp_path / "x.csv").read_text() == "x\n2\n1\n"
    assert con.tables() == [], "no table is left"
    # Rows keep the order of the query.
    down = con.sql("SELECT * FROM generate_series(1, 50000) AS t(n) ORDER BY n DESC")
    down.to_csv(tmp_path / "down.csv")
    assert (tmp_path / "down.csv").read_text().split()[1:] == [str(n) for n in range(50000, 0, -1)]
    with pytest.raises(gf.Error, match="no folder"):
        means.to_csv(tmp_path / "none" / "m.csv")


def test_views(con, means):
    assert sorted(means.create_view("means").fetchall()) == means.fetchall()
    assert con.sql("SELECT max(lat) FROM means").fetchall() == [(60.0,)]
    assert con.tables() == ["means"]
    con.unregister("means")
    with pytest.raises(gf.ProgrammingError, match="means"):
        con.unregister("means")


def test_readers(con, air, data):
    whole = con.sql(f"SELECT count(*) FROM '{air}'").fetchall()[0][0]
    assert con.read(air).shape[0] == whole
    assert con.read(air, "t2m").shape == (whole, 4)
    assert con.read_netcdf(air, "t2m", index_columns=True).columns[-1] == "lon_idx"
    assert con.read(data / "air.nc", io="pread").shape[0] == whole
    years = sorted(str(path) for path in (data / "years").iterdir())
    assert con.read(years).shape == con.read(str(data / "years" / "*")).shape
    assert "read_zarr" in dir(con) and "array_attributes" in dir(gf) and "tet_info" in con.table_functions()
    assert gf.read_zarr(data / "sea.zarr").shape[0] > 0
    assert "t2m" in [row[0] for row in gf.array_info(air).fetchall()] + con.info(air).fetchnumpy()["variable"].tolist()
    with pytest.raises(AttributeError, match="read_grib"):
        con.read_grib
    with pytest.raises(AttributeError, match="read_grib"):
        gf.read_grib
    with pytest.raises(gf.ProgrammingError, match="iq"):
        con.read(air, iq="pread")


def test_fetchone_does_not_hide_an_error(con):
    # The error is in a later batch than the first.
    rows = con.sql("SELECT 1 / (value - 30000) AS x FROM generate_series(1, 40000)")
    for _ in range(2):
        with pytest.raises(gf.DataError):
            while rows.fetchone() is not None:
                pass
    assert rows.fetchone() is not None


def test_held_rows_are_registered_as_they_are(con):
    held = con.execute("SELECT random() AS x FROM generate_series(1, 3)")
    con.register("held", held)
    assert con.table("held").fetchall() == con.table("held").fetchall() == held.fetchall()


def test_names_of_tables(con):
    con.sql("CREATE SCHEMA s; CREATE VIEW s.v AS SELECT 1 AS x")
    con.register("a.b", con.sql("SELECT 2 AS x"))
    con.register("A", con.sql("SELECT 3 AS x"))
    assert {"s.v", "a.b", "A"} <= set(con.tables())
    assert [con.table(name).fetchall() for name in ["s.v", "a.b", "A"]] == [[(1,)], [(2,)], [(3,)]]
    with pytest.raises(gf.ProgrammingError, match="s.w"):
        con.table("s.w")


def test_a_closed_connection():
    with gf.connect() as con:
        rows = con.sql("SELECT 1 AS x")
        assert hasattr(con, "read_array")
    assert not hasattr(con, "read_array") and not hasattr(con, "foo")
    with pytest.raises(AttributeError, match="closed"):
        con.read_array("x.nc")
    assert rows.fetchall() == [(1,)]
    with pytest.raises(gf.InterfaceError, match="closed"):
        rows.show()


def test_options(air):
    with gf.connect(threads=1, memory_limit="100m", options={"datafusion.execution.batch_size": 77}) as con:
        settings = dict(con.sql("SHOW ALL").fetchall())
        assert settings["datafusion.execution.target_partitions"] == "1"
        assert settings["datafusion.execution.batch_size"] == "77"
        con.set("reduce_memory", 1_000_000)
        con.set("gridfusion.optimizer.enable_reduce", False)
        assert "GridReduceExec" not in con.sql(MEANS.format(air)).explain()
        con.set("gridfusion.optimizer.enable_reduce", "true")
        assert "GridReduceExec" in con.sql(MEANS.format(air)).explain()
    assert con.is_closed and "closed" in repr(con)
    with pytest.raises(gf.InterfaceError, match="closed"):
        con.sql("SELECT 1")
    for options, message in [
        ({"memory_limit": "much"}, "for instance 2g"),
        ({"threads": 0}, "threads = 0"),
        ({"no_such_thing": 1}, "no_such_thing"),
        ({"a'b": 1}, "no name"),
    ]:
        with pytest.raises(gf.ProgrammingError, match=message):
            gf.connect(**options)


def test_a_root(tmp_path, air):
    with gf.connect(root=tmp_path) as con, pytest.raises(gf.Error):
        con.read(air).fetchall()


def test_the_module(air):
    assert gf.sql("SELECT 1 + 1").fetchall() == [(2,)]
    assert gf.execute("SELECT 1").fetchall() == [(1,)]
    assert gf.read(air).dims == ["time", "lat", "lon"]
    gf.register("gone", gf.sql("SELECT 3 AS x")).unregister("gone")
    gf.default_connection().close()
    assert gf.sql("SELECT 1").fetchall() == [(1,)], "another connection is made"


def test_public_names_have_docs():
    for owner in [gf, gf.Connection, gf.Relation]:
        for name, member in vars(owner).items():
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, (property, type))):
                assert member.__doc__, f"{owner.__name__}.{name}"


def test_settings_have_the_names_of_connect(con):
    con.set("threads", 3)
    name = "datafusion.execution.target_partitions"
    assert con.sql(f"SHOW {name}").fetchall() == [(name, "3")]
    with pytest.raises(gf.ProgrammingError, match="at least 1"):
        con.set("threads", 0)
    with pytest.raises(gf.ProgrammingError, match="connect\\(memory_limit"):
        con.set("memory_limit", "1g")


def test_advice_is_for_python(con, tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    xarray.Dataset({"a": ("x", [1.0]), "b": ("y", [1.0, 2.0])}).to_netcdf(tmp_path / "two.nc")
    with pytest.raises(gf.ProgrammingError, match="choose one with variable,"):
        con.read(tmp_path / "two.nc")
    assert con.read(tmp_path / "two.nc", variable="b").shape[0] == 2
    with pytest.raises(ValueError, match=r"or none with dims=\[\]"):
        con.sql("SELECT avg(1.5) AS x").xarray()
