"""Relations as tables of the package `datafusion`."""

from __future__ import annotations

import importlib.metadata

import pytest

import gridfusion as gf

datafusion = pytest.importorskip("datafusion")
if not datafusion.__version__.startswith("55."):
    pytest.skip("another version", allow_module_level=True)

MEANS = "SELECT lat, avg(t2m) AS t2m FROM {} GROUP BY lat ORDER BY lat"


@pytest.fixture
def host():
    return datafusion.SessionContext()


def rows(frame) -> list[tuple]:
    return [tuple(row.values()) for row in frame.to_pylist()]


def test_a_relation_is_a_table(con, host, air):
    host.register_table("t", con.read(air))
    ours = con.sql(MEANS.format(f"'{air}'")).fetchall()
    theirs = rows(host.sql(MEANS.format("t")))
    assert [lat for lat, _ in theirs] == [lat for lat, _ in ours]
    assert [mean for _, mean in theirs] == pytest.approx([mean for _, mean in ours])
    assert host.sql("SELECT count(*) FROM t").to_pylist() == [{"count(*)": con.read(air).shape[0]}]


def test_filters_columns_and_limits_cross(con, host, air):
    host.register_table("t", con.read(air))
    sql = "SELECT t2m, lon FROM {} WHERE lat = 60 AND time >= TIMESTAMP '2024-06-01' AND t2m > 280"
    theirs = host.sql(sql.format("t"))
    assert sorted(rows(theirs)) == sorted(con.sql(sql.format(f"'{air}'")).fetchall())
    plan = str(theirs.execution_plan())
    assert "gridfusion" in plan and "GridScanExec" in plan
    only = str(host.sql("SELECT lon FROM t WHERE lat = 60").execution_plan())
    assert "FilterExec" not in only, "the scan selects the cells"
    assert len(rows(host.sql("SELECT * FROM t LIMIT 7"))) == 7


def test_our_queries_keep_their_reductions(con, host, air):
    host.register_table("means", con.sql(MEANS.format(f"'{air}'")))
    plan = str(host.sql("SELECT * FROM means WHERE lat > 0").execution_plan())
    assert "GridReduceExec" in plan
    assert rows(host.sql("SELECT * FROM means WHERE lat > 0 ORDER BY lat")) == [it for it in con.sql(MEANS.format(f"'{air}'")).fetchall() if it[0] > 0]


def test_rows_in_memory_are_a_table(con, host):
    host.register_table("t", con.execute("SELECT value AS n FROM generate_series(1, 20000)"))
    assert rows(host.sql("SELECT sum(n) AS s FROM t WHERE n > 10000")) == [(sum(range(10001, 20001)),)]
    assert con.tables() == []


def test_tables_of_both_engines_join(con, host, air):
    host.register_table("t", con.read(air))
    host.from_pydict({"lat": [60.0, 36.0], "name": ["north", "south"]}, name="places")
    theirs = rows(host.sql("SELECT name, count(*) AS n FROM t JOIN places ON CAST(t.lat AS DOUBLE) = places.lat GROUP BY name ORDER BY name"))
    each = con.sql(f"SELECT count(*) FROM '{air}' WHERE lat = 60").fetchall()[0][0]
    assert theirs == [("north", each), ("south", each)]


def test_table_functions(con, host, air):
    host.register_udtf(datafusion.udtf(con.table_function("read_netcdf"), "read_netcdf"))
    theirs = rows(host.sql(f"SELECT count(*) AS n FROM read_netcdf('{air}', 't2m') WHERE lat = 60"))
    assert theirs == con.sql(f"SELECT count(*) FROM '{air}' WHERE lat = 60").fetchall()
    with pytest.raises(gf.ProgrammingError, match="read_grib"):
        con.table_function("read_grib")


def test_errors_are_told(con, host):
    host.register_table("t", con.sql("SELECT 1 / (value - 3) AS x FROM generate_series(1, 5)"))
    with pytest.raises(Exception, match="zero"):
        host.sql("SELECT sum(x) FROM t").collect()


def test_other_versions_are_refused(con, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "56.0.0")
    with pytest.raises(gf.NotSupportedError, match="datafusion 56.0.0 .* install datafusion>=55,<56"):
        con.sql("SELECT 1").__datafusion_table_provider__(None)
    with pytest.raises(gf.NotSupportedError, match="datafusion 56.0.0"):
        con.table_function("read_array")
