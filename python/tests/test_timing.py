"""Figures of runs."""

from __future__ import annotations

import pytest

import gridfusion as gf


def test_a_run_has_figures(con, air):
    rows = con.sql(f"SELECT max(t2m) FROM '{air}' WHERE lat > 60 AND time >= '2024-06'")
    assert rows.timing is None
    rows.show()
    assert rows.timing is None
    rows.fetchall()
    timing = rows.timing
    assert 0 < timing["planning_seconds"] < timing["seconds"] < 60
    assert timing["rows"] == 1 and timing["chunks_read"] > 0 and timing["bytes_read"] > 0
    assert timing["chunks_read"] + timing["chunks_pruned"] + timing["chunks_answered"] == timing["chunks"]
    assert timing["requests"] == timing["bytes_fetched"] == 0
    assert con.execute(f"SELECT * FROM '{air}' LIMIT 5").timing["rows"] == 5


def test_streams_have_figures_at_their_end(con):
    rows = con.sql("SELECT value FROM generate_series(1, 50000)")
    assert rows.fetchone() == (1,) and rows.timing is None
    while rows.fetchone():
        pass
    assert rows.timing["rows"] == 50000
    pytest.importorskip("pyarrow")
    more = con.sql("SELECT value FROM generate_series(1, 50000)")
    assert sum(batch.num_rows for batch in more.batches()) == more.timing["rows"] == 50000


def test_failed_runs_have_none(con):
    rows = con.sql("SELECT 1 / (value - 2) FROM generate_series(1, 2)")
    with pytest.raises(gf.DataError):
        rows.fetchall()
    assert rows.timing is None
    assert con.execute("SHOW TABLES").timing is None
