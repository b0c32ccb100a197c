"""The command `gridfusion` of the package."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from importlib.metadata import entry_points

import pytest

import gridfusion as gf
from gridfusion.__main__ import main

from test_errors import ENDLESS

PROGRAM = [sys.executable, "-m", "gridfusion"]


def run(*words: str, **more) -> subprocess.CompletedProcess:
    return subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False, timeout=120, **more)


def test_the_version_is_that_of_the_package():
    done = run("-V")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"gridfusion {gf.__version__}\n", "")


def test_queries_print_as_in_the_program(air, program):
    sql = f"SELECT lat, avg(t2m) AS t2m FROM '{air}' GROUP BY lat ORDER BY lat"
    done = run("-q", "--format", "csv", "-c", sql)
    rows = gf.sql(sql).fetchall()
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0], len(lines)) == (0, "lat,t2m", len(rows) + 1)
    assert run("info", air, "--json").stdout == subprocess.run(
        [os.environ["GRIDFUSION_PROGRAM"], "info", air, "--json"], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["-c", "SELECT 1 / 0"], 1, "Error: "),
        (["-c", "SELEC 1"], 1, "Error: "),
        (["--no-such-option"], 2, "--no-such-option"),
        (["verify", "none.nc"], 1, ""),
    ],
)
def test_the_exit_status(words, status, message):
    done = run(*words)
    assert done.returncode == status and message in done.stderr
    assert "Traceback" not in done.stderr


def test_warnings_reach_standard_error(data, tmp_path):
    (tmp_path / "a.nc").write_bytes((data / "air.nc").read_bytes())
    (tmp_path / "bad.nc").write_bytes(b"nothing")
    done = run("-c", f"SELECT count(t2m) FROM read_array('{tmp_path}/*.nc', skip_unreadable => true)")
    assert done.returncode == 0, done.stderr
    assert "warning: " in done.stderr and "bad.nc" in done.stderr


def test_a_closed_pipe_is_quiet():
    sql = "SELECT value FROM generate_series(1, 3000000)"
    program = subprocess.Popen([*PROGRAM, "-q", "--format", "csv", "-c", sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = program.stdout.readline()
    program.stdout.close()
    errors = program.stderr.read()
    assert (first, errors, program.wait(60)) == (b"value\n", b"", 0)


def test_sql_comes_from_standard_input():
    done = run("-q", "--format", "csv", input="SELECT 1 AS one;\nSELECT 2 AS two;\n")
    assert done.stdout.split() == ["one", "1", "two", "2"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_interrupts_end_the_program():
    program = subprocess.Popen([*PROGRAM, "-c", f"SELECT 'begun'; {ENDLESS}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while b"begun" not in (line := program.stdout.readline()):
        assert line, program.stderr.read()
    begin = time.monotonic()
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=10)
    assert program.returncode == -signal.SIGINT and time.monotonic() - begin < 5


def test_words_of_any_bytes_reach_the_program(tmp_path):
    name = os.fsdecode(b"\xff.sql")
    (tmp_path / name).write_text("SELECT 41 + 1 AS n")
    assert run("-q", "--format", "csv", "-f", name, cwd=tmp_path).stdout.split() == ["n", "42"]


def test_the_package_has_the_command():
    (command,) = entry_points(group="console_scripts", name="gridfusion")
    assert command.load() is main
    path = shutil.which("gridfusion", path=sysconfig.get_path("scripts"))
    assert path is not None
    assert subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.split()[1] == gf.__version__
