"""Errors, interrupts, threads, forks and the end of the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pytest

import gridfusion as gf

#: A query that ends by itself only after hours.
ENDLESS = "SELECT sum(sqrt(a.value * b.value)) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b"


@pytest.mark.parametrize(
    ("sql", "kinds", "message"),
    [
        ("SELEC 1", (gf.ProgrammingError,), "SELEC"),
        ("SELECT x FROM nowhere", (gf.ProgrammingError,), "nowhere"),
        ("SELECT lad FROM '{air}'", (gf.ProgrammingError,), "did you mean"),
        ("SELECT 1 / 0", (gf.DataError, ValueError), "zero"),
        ("SELECT * FROM '{tmp}/none.nc'", (gf.DatabaseError,), "none.nc"),
        ("SELECT * FROM '{tmp}/bad.nc'", (gf.DataError,), "bad.nc"),
    ],
)
def test_errors_have_classes_and_messages(con, air, tmp_path, sql, kinds, message):
    (tmp_path / "bad.nc").write_bytes(b"CDF\x01" + b"\xff" * 60)
    with pytest.raises(gf.Error, match=message) as raised:
        con.execute(sql.format(air=air, tmp=tmp_path))
    for kind in kinds:
        assert isinstance(raised.value, kind), raised.value


def test_messages_are_those_of_the_program(program, con, air):
    for sql in [f"SELECT lad FROM '{air}'", "SELECT * FROM nope", "SELEC 1", "SELECT 1 / 0", "SET gridfusion.oi = 1"]:
        with pytest.raises(gf.Error) as ours:
            con.execute(sql)
        with pytest.raises(RuntimeError) as theirs:
            program(sql)
        assert str(theirs.value).strip() == f"Error: {ours.value}"


def test_the_memory_limit():
    with gf.connect(memory_limit="10m") as con, pytest.raises(gf.MemoryLimitError) as raised:
        con.execute("SELECT array_agg(value) FROM generate_series(1, 10000000)")
    assert isinstance(raised.value, MemoryError)
    with gf.connect(memory_limit="10m") as con, pytest.raises(gf.MemoryLimitError):
        con.sql("SELECT * FROM generate_series(1, 10000000)").fetchall()


def test_warnings_of_files_left_out(con, data, tmp_path):
    for path in (data / "years").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    ending = next(iter((data / "years").iterdir())).suffix
    (tmp_path / f"bad{ending}").write_bytes(b"nothing")
    with pytest.warns(gf.Warning, match="bad"):
        rows = con.read(str(tmp_path / f"*{ending}"), skip_unreadable=True).shape[0]
    assert rows == con.read(str(data / "years" / f"*{ending}")).shape[0]


def test_a_warning_that_is_an_exception_hides_no_error(con, data, tmp_path):
    (tmp_path / "a.nc").write_bytes((data / "air.nc").read_bytes())
    (tmp_path / "b.nc").write_bytes(b"nothing")
    query = f"SELECT t2m FROM read_array('{tmp_path}/*.nc', skip_unreadable => true)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(gf.Warning, match="b.nc"):
            con.sql(query)
        with pytest.raises(gf.ProgrammingError, match="nowhere"):
            con.sql(f"{query}; SELECT x FROM nowhere")


def test_earlier_rows_of_a_script_need_no_memory():
    with gf.connect(memory_limit="10m") as con:
        rows = con.sql("SELECT * FROM generate_series(1, 5000000); SELECT 1")
        assert rows.fetchall() == [(1,)]


def interrupt_after(seconds: float) -> None:
    """Send SIGINT to this process from another thread, as Ctrl-C does."""
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


@pytest.mark.parametrize("method", ["fetchall", "stream", "copy", "count", "plan"])
def test_ctrl_c_ends_a_query(con, tmp_path, method):
    endless = con.sql(ENDLESS)
    interrupt_after(0.4)
    with pytest.raises(KeyboardInterrupt):
        if method == "fetchall":
            endless.fetchall()
        elif method == "stream":
            list(endless.batches())
        elif method == "copy":
            endless.to_csv(tmp_path / "endless.csv")
        elif method == "count":
            con.sql("SELECT DISTINCT value % 10000019 FROM generate_series(1, 1000000000000)").shape
        else:
            con.sql(f"{ENDLESS}; SELECT 1")
    assert list(tmp_path.iterdir()) == []
    assert con.sql("SELECT 1").fetchall() == [(1,)], "the connection works on"


def test_ctrl_c_does_not_wait(con):
    """No query waits for the moment that a statement has to remove its files."""
    waited = []
    for _ in range(5):
        sent = time.monotonic() + 0.2
        interrupt_after(0.2)
        with pytest.raises(KeyboardInterrupt):
            con.sql(ENDLESS).fetchall()
        waited.append(time.monotonic() - sent)
    assert min(waited) < 0.25


def test_other_threads_run_during_a_query(con):
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        interrupt_after(0.6)
        with pytest.raises(KeyboardInterrupt):
            con.sql(ENDLESS).fetchall()
    finally:
        stop.set()
        thread.join()
    assert counted[0] > 10_000


def test_threads_share_a_connection(con, air):
    sql = f"SELECT lat, avg(t2m) AS mean FROM '{air}' GROUP BY lat ORDER BY lat"
    expected, found = con.sql(sql).fetchall(), []
    relation = con.sql(sql)

    def run() -> None:
        for _ in range(10):
            found.append(relation.fetchall())
            found.append(con.sql(sql).fetchall())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80 and all(rows == expected for rows in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_is_refused(con):
    con.sql("SELECT 1").fetchall()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            con.sql("SELECT 1")
        except gf.InterfaceError as error:
            status = 0 if "spawn" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert con.sql("SELECT 1").fetchall() == [(1,)]


def test_the_exit_does_not_hang():
    script = f"""
        import threading, gridfusion as gf
        batches = gf.sql("SELECT * FROM generate_series(1, 1000000000000)").batches()
        next(batches)
        stream = gf.sql("SELECT * FROM generate_series(1, 1000000000000)").__arrow_c_stream__()
        threading.Thread(target=lambda: gf.sql({ENDLESS!r}).fetchall(), daemon=True).start()
        print("end")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="files are counted in /proc")
def test_queries_leave_nothing_behind(air):
    def run(times: int) -> None:
        for _ in range(times):
            with gf.connect() as con:
                con.sql(f"SELECT lat, avg(t2m) FROM '{air}' GROUP BY lat").fetchnumpy()

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    run(20)
    files, memory = len(os.listdir("/proc/self/fd")), resident()
    run(200)
    assert len(os.listdir("/proc/self/fd")) <= files
    assert resident() - memory < 60 << 20


def test_importing_needs_no_other_library():
    script = "import sys, gridfusion; gridfusion.sql('SELECT 1').fetchall(); print([m for m in ('numpy', 'pyarrow', 'pandas', 'xarray', 'polars') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr
