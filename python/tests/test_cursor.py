"""PEP 249."""

from __future__ import annotations

import datetime as dt

import pytest

import gridfusion as gf


def test_the_globals():
    assert (gf.apilevel, gf.threadsafety, gf.paramstyle) == ("2.0", 2, "qmark")
    assert issubclass(gf.Error, Exception) and issubclass(gf.Warning, Exception)
    assert gf.Date(2024, 1, 2) == dt.date(2024, 1, 2) and gf.Binary(b"a") == b"a"
    assert gf.TimestampFromTicks(0).date() == gf.DateFromTicks(0)
    assert isinstance(gf.TimeFromTicks(0), dt.time)


def test_a_query(con, air):
    cursor = con.cursor()
    assert (cursor.description, cursor.rowcount, cursor.arraysize, cursor.connection) == (None, -1, 1, con)
    sql = "SELECT lat, CAST(avg(t2m) AS INT) AS t2m, 'a' AS s, min(time) AS first FROM '{}' WHERE lat > ? GROUP BY lat ORDER BY lat"
    assert cursor.execute(sql.format(air), [0]) is cursor
    names, kinds = [column[0] for column in cursor.description], [column[1] for column in cursor.description]
    assert names == ["lat", "t2m", "s", "first"] and all(len(column) == 7 for column in cursor.description)
    assert kinds[0] == gf.NUMBER and kinds[1] == gf.NUMBER and kinds[2] == gf.STRING and kinds[3] == gf.DATETIME
    assert gf.STRING == "Dictionary(Int32, Utf8)" and gf.NUMBER != "Dictionary(Int32, Utf8)"
    assert kinds[0] != gf.STRING and kinds[2] != gf.NUMBER and gf.BINARY != gf.ROWID
    rows = con.sql(sql.format(air), [0]).fetchall()
    assert cursor.fetchone() == rows[0]
    assert cursor.fetchmany() == rows[1:2] and cursor.fetchmany(3) == rows[2:5]
    cursor.arraysize = 2
    assert len(rows) == 7 and cursor.fetchmany() == rows[5:]
    cursor.execute(sql.format(air), [0])
    assert next(iter(cursor)) == rows[0] and cursor.fetchall() == rows[1:]
    assert cursor.fetchone() is None and cursor.fetchone() is None and cursor.fetchall() == [] and cursor.fetchmany(5) == []


def test_rows_of_several_batches(con):
    cursor = con.cursor().execute("SELECT value FROM generate_series(1, 50000) ORDER BY value")
    assert [row[0] for row in cursor] == list(range(1, 50001))


def test_statements_without_rows(con):
    cursor = con.cursor().execute("CREATE TABLE t (x INT, y VARCHAR)")
    assert cursor.description is None and cursor.rowcount == -1
    with pytest.raises(gf.ProgrammingError):
        cursor.fetchone()
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1, "a"), (2, None)])
    assert cursor.rowcount == 2
    cursor.execute("INSERT INTO t SELECT x + 2, y FROM t")
    assert cursor.rowcount == 2
    cursor.execute("SELECT x, y FROM t ORDER BY x")
    assert cursor.fetchall() == [(1, "a"), (2, None), (3, "a"), (4, None)]
    assert cursor.execute("SHOW TABLES").fetchall()
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)


def test_errors_leave_the_cursor_usable(con):
    cursor = con.cursor().execute("SELECT 1")
    with pytest.raises(gf.ProgrammingError):
        cursor.execute("SELEC 1")
    assert cursor.description is None
    with pytest.raises(gf.DataError):
        cursor.execute("SELECT 1 / (value - 1) FROM generate_series(1, 2)").fetchall()
    assert cursor.execute("SELECT 2").fetchall() == [(2,)]


def test_closing(con):
    with con.cursor() as cursor:
        cursor.execute("SELECT value FROM generate_series(1, 1000000)")
        assert cursor.fetchone()
    for call in [cursor.fetchone, cursor.fetchall, lambda: cursor.execute("SELECT 1")]:
        with pytest.raises(gf.InterfaceError):
            call()
    con.commit()
    with pytest.raises(gf.NotSupportedError):
        con.rollback()
    con.close()
    for call in [con.cursor, con.commit]:
        with pytest.raises(gf.InterfaceError):
            call()


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_pandas_reads_sql(con, air):
    pandas = pytest.importorskip("pandas")
    sql = f"SELECT lat, avg(t2m) AS t2m FROM '{air}' WHERE lat > ? GROUP BY lat ORDER BY lat"
    frame = pandas.read_sql(sql, con, params=[30])
    expected = con.sql(sql, [30]).df()
    assert frame.columns.tolist() == ["lat", "t2m"] and frame["t2m"].tolist() == expected["t2m"].tolist()
    with pytest.raises((gf.Error, pandas.errors.DatabaseError), match="SELEC"):
        pandas.read_sql("SELEC 1", con)
