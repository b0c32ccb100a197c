"""Rows that cross to other libraries and back as streams of Arrow."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import gridfusion as gf

pa = pytest.importorskip("pyarrow")


def test_streams_have_many_batches_and_share_their_memory(con):
    rows = con.execute("SELECT value AS v FROM generate_series(1, 50000)")
    first, second = pa.table(rows), pa.table(rows)
    assert first.column("v").num_chunks > 1
    address = lambda table: [chunk.buffers()[1].address for chunk in table.column("v").chunks]
    assert address(first) == address(second)
    reader = pa.RecordBatchReader.from_stream(con.sql("SELECT value AS v FROM generate_series(1, 50000)"))
    assert [batch.num_rows for batch in reader][:2] == [8192, 8192]


def test_registered_rows_share_their_memory(con):
    table = pa.table({"v": pa.array(range(1000), pa.int64())})
    con.register("t", table)
    found = con.sql("SELECT v FROM t").arrow()
    assert found.column("v").chunk(0).buffers()[1].address == table.column("v").chunk(0).buffers()[1].address


def test_a_schema_is_asked_for(con):
    rows = con.sql("SELECT 'a' AS s, 1 AS n")
    assert pa.schema(rows).field("s").type in (pa.string(), pa.string_view())
    wanted = pa.schema([("s", pa.large_string()), ("n", pa.int32())])
    assert pa.RecordBatchReader.from_stream(rows, wanted).read_all().schema.types == wanted.types
    assert pa.RecordBatchReader.from_stream(con.execute("SELECT 'a' AS s, 1 AS n"), wanted).read_all().to_pylist() == [{"s": "a", "n": 1}]


@pytest.mark.parametrize("wrong", ["schema", "object", "taken"])
def test_capsules_that_are_no_streams(con, wrong):
    table = pa.table({"v": [1]})

    class Wrong:
        def __arrow_c_stream__(self, requested_schema=None):
            if wrong == "schema":
                return table.schema.__arrow_c_schema__()
            return 5 if wrong == "object" else capsule

    capsule = table.__arrow_c_stream__()
    if wrong == "taken":
        con.register("t", Wrong())
    with pytest.raises((ValueError, TypeError, gf.Error)):
        con.register("u", Wrong())
    assert con.tables() == (["t"] if wrong == "taken" else [])


def test_tables_of_duckdb(con):
    duckdb = pytest.importorskip("duckdb")
    con.register("d", duckdb.sql("SELECT range AS n, 'x' || range AS s FROM range(100000)"))
    assert con.sql("SELECT count(*), max(n), min(s) FROM d").fetchall() == [(100_000, 99_999, "x0")]


def test_errors_of_a_stream_are_told(con):
    with pytest.raises(Exception, match="zero"):
        pa.table(con.sql("SELECT 1 / (value - 30000) AS v FROM generate_series(1, 40000)"))


def test_polars_and_duckdb_need_no_pyarrow():
    pytest.importorskip("polars"), pytest.importorskip("duckdb")
    script = """
import sys
sys.modules["pyarrow"] = None
import duckdb, polars, gridfusion as gf
con = gf.connect()
rows = con.sql("SELECT value AS n, 'x' AS s FROM generate_series(1, 3)")
frame = rows.pl()
assert con.register("p", frame).sql("SELECT sum(n) FROM p").fetchall() == [(6,)]
assert duckdb.sql("SELECT count(*) FROM rows").fetchall() == [(3,)]
assert con.register("d", duckdb.sql("SELECT 7 AS n")).table("d").fetchall() == [(7,)]
print("end")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("end\n", 0), done.stderr


def test_ctrl_c_ends_a_stream(con):
    endless = con.sql("SELECT sum(sqrt(a.value * b.value)) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b")
    begin = time.monotonic()
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        try:
            pa.table(endless)
        except pa.ArrowException:
            # The library has an exception of its own; the interrupt follows.
            while time.monotonic() - begin < 10:
                pass
    assert time.monotonic() - begin < 3
    assert con.sql("SELECT 1").fetchall() == [(1,)]


def test_values_that_do_not_fit_a_requested_type_are_errors(con):
    wanted = pa.schema([("x", pa.int8())])
    rows = con.sql("SELECT * FROM (VALUES (1), (NULL)) AS t(x)")
    assert pa.RecordBatchReader.from_stream(rows, schema=wanted).read_all()["x"].to_pylist() == [1, None]
    rows = con.sql("SELECT * FROM (VALUES (300), (NULL)) AS t(x)")
    with pytest.raises(pa.ArrowException, match="300"):
        pa.RecordBatchReader.from_stream(rows, schema=wanted).read_all()
