"""Progress of queries."""

from __future__ import annotations

import sys
import time
import types

import pytest

import gridfusion as gf
from gridfusion import _progress


@pytest.fixture
def slow(con, air):
    """A query of an array that runs for more than half a second."""
    return f"SELECT sum(sqrt(abs(a.t2m * b.value))) FROM '{air}' a, generate_series(1, {{}}) b"


def run(con, sql, least=0.6):
    """Run a query that is large enough, and return its rows and seconds."""
    size = 2000
    while True:
        rows = con.sql(sql.format(size))
        rows.fetchall()
        if rows.timing["seconds"] > least:
            return rows
        size *= 3


def test_a_function_sees_the_progress(con, slow):
    seen = []
    con.progress = lambda *counts: seen.append(counts)
    rows = run(con, slow)
    assert seen and all(len(counts) == 3 for counts in seen)
    done, of, read = seen[-1]
    assert 0 < done <= of <= rows.timing["chunks"] and read <= rows.timing["bytes_read"]


def test_its_errors_end_the_query(con):
    def stop(*_):
        raise RuntimeError("enough")

    con.progress = stop
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="enough"):
        con.execute("SELECT sum(sqrt(a.value * b.value)) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b")
    assert time.monotonic() - begin < 10


def test_a_line_without_tqdm(con, slow, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(_progress, "PATIENCE", 0)
    con.progress = True
    run(con, slow)
    text = capsys.readouterr().err
    assert " chunks, " in text and text.endswith("\r")


def test_short_queries_show_nothing(capsys):
    with gf.connect(progress=True) as con:
        assert con.sql("SELECT 1").fetchall() == [(1,)]
    assert capsys.readouterr().err == ""


def test_a_bar_of_tqdm(con, slow, monkeypatch):
    bars = []

    class Bar(types.SimpleNamespace):
        def __init__(self, **options):
            super().__init__(**options, n=0, closed=False)
            bars.append(self)

        def refresh(self):
            assert 0 <= self.n <= self.total

        def close(self):
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    monkeypatch.setattr(_progress, "PATIENCE", 0)
    con.progress = True
    run(con, slow)
    assert bars and all(bar.closed and bar.n > 0 for bar in bars)
