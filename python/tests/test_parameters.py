"""Values for placeholders."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

import gridfusion as gf

UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "Null"),
        (True, "Boolean"),
        (False, "Boolean"),
        (-(2**63), "Int64"),
        (2**63 - 1, "Int64"),
        (2**64 - 1, "UInt64"),
        (0.1, "Float64"),
        (math.inf, "Float64"),
        (-math.inf, "Float64"),
        ("it's ? $1 \"x\"; --ä\n", "Utf8"),
        (b"\x00\xff'", "Binary"),
        (dt.date(1, 1, 1), "Date32"),
        (dt.date(2024, 2, 29), "Date32"),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999999), "Timestamp(µs)"),
        (dt.datetime(9999, 12, 31, 23, 59, 59, 999999), "Timestamp(µs)"),
        (dt.datetime(2024, 7, 1, 12, tzinfo=UTC), 'Timestamp(µs, "+00:00")'),
        (dt.time(23, 59, 59, 1), "Time64(µs)"),
        (dt.timedelta(days=-1, microseconds=1), "Duration(µs)"),
        (Decimal("123.450"), "Decimal128(6, 3)"),
        (Decimal("-0.001"), "Decimal128(3, 3)"),
        (Decimal("1E+5"), "Decimal128(6, 0)"),
        (Decimal(2**100), "Decimal128(31, 0)"),
        (Decimal("1" * 40), "Decimal256(40, 0)"),
    ],
)
def test_values_come_back_with_their_type(con, value, kind):
    for rows in [con.sql("SELECT ? AS x", [value]), con.sql("SELECT $v AS x", {"v": value}), con.sql("SELECT $1 AS x", (value,))]:
        ((found,),) = rows.fetchall()
        assert found == value and type(found) is type(value)
        assert rows.types == [kind] and rows.columns == ["x"]


def test_other_values_become_plain_ones(con):
    local = dt.datetime(2024, 7, 1, 14, tzinfo=ZoneInfo("Europe/Berlin"))
    for value, expected in [
        (math.nan, None),
        (Decimal("NaN"), None),
        (Decimal("-Infinity"), -math.inf),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
        (Path("a/b.nc"), "a/b.nc"),
        (2**64, Decimal(2**64)),
        (local, dt.datetime(2024, 7, 1, 12, tzinfo=UTC)),
    ]:
        ((found,),) = con.sql("SELECT ?", [value]).fetchall()
        assert math.isnan(found) if expected is None else found == expected, value


def test_scalars_of_numpy(con):
    np = pytest.importorskip("numpy")
    for value, expected, kind in [
        (np.bool_(True), True, "Boolean"),
        (np.int8(-5), -5, "Int64"),
        (np.uint64(2**64 - 1), 2**64 - 1, "UInt64"),
        (np.float32(0.5), 0.5, "Float64"),
        (np.float64("inf"), math.inf, "Float64"),
        (np.longdouble(1.5), 1.5, "Float64"),
        (np.str_("a"), "a", "Utf8"),
        (np.bytes_(b"a"), b"a", "Binary"),
        (np.array(7), 7, "Int64"),
        (np.datetime64("2024-06"), dt.date(2024, 6, 1), "Date32"),
        (np.datetime64("2024-06-01T06"), dt.datetime(2024, 6, 1, 6), "Timestamp(s)"),
        (np.datetime64("2024-06-01T06:00:00.5", "ns"), dt.datetime(2024, 6, 1, 6, 0, 0, 500000), "Timestamp(ns)"),
        (np.datetime64("NaT", "us"), None, "Timestamp(µs)"),
        (np.timedelta64(36, "h"), dt.timedelta(hours=36), "Duration(s)"),
        (np.timedelta64(2, "W"), dt.timedelta(weeks=2), "Duration(s)"),
    ]:
        rows = con.sql("SELECT ? AS x", [value])
        assert (rows.fetchall(), rows.types) == ([(expected,)], [kind]), value
    with pytest.raises(gf.ProgrammingError, match="timedelta64"):
        con.sql("SELECT ?", [np.timedelta64(1, "M")])


def test_scalars_of_pandas(con):
    pd = pytest.importorskip("pandas")
    nanoseconds = pd.Timestamp("2024-06-01T00:00:00.123456789")
    assert con.sql("SELECT CAST(? AS BIGINT)", [nanoseconds]).fetchall() == [(nanoseconds.value,)]
    zoned = con.sql("SELECT ? AS x", [pd.Timestamp("2024-06-01T02:00", tz="Europe/Berlin")])
    assert zoned.fetchall() == [(dt.datetime(2024, 6, 1, tzinfo=UTC),)]
    assert con.sql("SELECT ?, ?", [pd.NaT, pd.NA]).fetchall() == [(None, None)]


def test_marks_in_quotes_and_comments_stay(con):
    sql = """SELECT '?' AS "a?", ? AS b, 'it''s ?' /* ? */ AS c, $$?$$ AS d -- ?
             WHERE ? = ?"""
    rows = con.sql(sql, ["x", 1, 1])
    assert rows.columns == ["a?", "b", "c", "d"]
    assert rows.fetchall() == [("?", "x", "it's ?", "?")]


@pytest.mark.parametrize(
    ("sql", "parameters", "message"),
    [
        ("SELECT ?, ?", [1], "2 placeholders, and 1 value is given"),
        ("SELECT ?", [], "1 placeholder, and 0 values are given"),
        ("SELECT 1", [1], "0 placeholders"),
        ("SELECT $2", [1], "2 placeholders"),
        ("SELECT ?, $1", [1, 2], "one kind"),
        ("SELECT $a", [1], r"\$a"),
        ("SELECT ?", {"a": 1}, "a list"),
        ("SELECT $a, $b", {"a": 1}, r"\$b has no value"),
        ("SELECT $a", {"a": 1, "c": 1}, r"no placeholder \$c"),
        ("SELECT ?; SELECT 1", [1], "single statement"),
        ("SELECT ?", [object()], "a parameter is"),
        ("SELECT ?", [[1]], "a parameter is"),
        ("CREATE TABLE t AS SELECT 1 AS x; INSERT INTO t VALUES (?)", [1], "single"),
        ("SELECT ?", "x", "the parameters are 'x'"),
        ("SELECT ?", 5, "the parameters are 5"),
        ("SELECT ?", [Decimal("1e80")], "81 digits"),
    ],
)
def test_wrong_parameters(con, sql, parameters, message):
    with pytest.raises(gf.ProgrammingError, match=message):
        con.sql(sql, parameters)


def test_a_statement_without_values_fails(con):
    with pytest.raises(gf.Error):
        con.execute("SELECT ?")


def test_a_value_of_the_wrong_type_for_a_table(con):
    con.execute("CREATE TABLE t (x INT, y TIMESTAMP)")
    con.execute("INSERT INTO t VALUES (?, ?)", [7.0, "2024-06-01"])
    assert con.sql("SELECT * FROM t").fetchall() == [(7, dt.datetime(2024, 6, 1))]
    with pytest.raises(gf.DatabaseError, match="a"):
        con.execute("INSERT INTO t VALUES (?, ?)", ["a", None])
    assert con.sql("SELECT * FROM t").shape == (1, 2)
    with pytest.raises(gf.NotSupportedError, match="SUMMARIZE"):
        con.sql("SUMMARIZE SELECT ? AS x", [1])


def test_values_are_never_sql(con):
    con.execute("CREATE TABLE t AS SELECT 1 AS x")
    assert con.sql("SELECT * FROM t WHERE 'a' = ?", ["' OR 1 = 1; DROP TABLE t; --"]).fetchall() == []
    assert con.tables() == ["t"]


def test_predicates_with_values_prune_chunks(con, air):
    numbers = dict(lat=60.0, time=dt.datetime(2024, 6, 1))
    named = con.sql(f"SELECT max(t2m) FROM '{air}' WHERE lat > $lat AND time >= $time", numbers)
    marked = con.sql(f"SELECT max(t2m) FROM '{air}' WHERE lat > ? AND time >= ?", list(numbers.values()))
    written = con.sql(f"SELECT max(t2m) FROM '{air}' WHERE lat > 60.0 AND time >= TIMESTAMP '2024-06-01'")
    whole = con.sql(f"SELECT max(t2m) FROM '{air}'")
    scan = [line.strip() for line in written.explain().splitlines() if "Grid" in line]
    assert scan
    for rows in [named, marked]:
        assert rows.fetchall() == written.fetchall()
        assert [line.strip() for line in rows.explain().splitlines() if "Grid" in line] == scan
        for count in ["chunks", "chunks_read", "bytes_read"]:
            assert rows.timing[count] == written.timing[count]
    whole.fetchall()
    assert named.timing["bytes_read"] < whole.timing["bytes_read"]


def test_other_statements_take_values(con, tmp_path):
    con.execute("CREATE TABLE t AS SELECT ? AS x, CAST(? AS VARCHAR) AS y", [1, "a"])
    con.execute("INSERT INTO t VALUES (?, ?)", [2, "it's"])
    con.execute("INSERT INTO t (y, x) VALUES ($y, $x)", {"x": 0, "y": "?"})
    assert con.sql("SELECT y, x FROM t ORDER BY x").fetchall() == [("?", 0), ("a", 1), ("it's", 2)]
    con.execute(f"COPY (SELECT * FROM t WHERE x >= $x) TO '{tmp_path}/t.csv'", {"x": 2})
    assert (tmp_path / "t.csv").read_text() == "x,y\n2,it's\n"
    assert con.sql("SELECT x FROM t ORDER BY x LIMIT ?", [1]).fetchall() == [(0,)]
    view = con.sql("SELECT x + ? AS z FROM t", [10]).create_view("v")
    assert sorted(view.fetchall()) == [(10,), (11,), (12,)]
    assert con.sql("EXPLAIN SELECT x FROM t WHERE x = ?", [1]).fetchall()
    assert gf.sql("SELECT ?", [3]).fetchall() == gf.execute("SELECT $a", {"a": 3}).fetchall() == [(3,)]
