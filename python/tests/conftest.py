"""The files of the tests, and the program, whose answers are the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import gridfusion as gf

# Shells start programs in the background with SIGINT ignored, and Python leaves that as it is.
signal.signal(signal.SIGINT, signal.default_int_handler)

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"


@pytest.fixture
def con():
    with gf.connect() as con:
        yield con


@pytest.fixture(scope="session")
def air() -> str:
    return str(DATA / "air.nc")


@pytest.fixture(scope="session")
def data() -> Path:
    return DATA


@pytest.fixture(scope="session")
def program():
    """A function that returns the rows that the program prints for a query."""
    path = os.environ.get("GRIDFUSION_PROGRAM")
    if not path:
        pytest.skip("GRIDFUSION_PROGRAM does not name the program")

    def rows(sql: str) -> list[dict]:
        done = subprocess.run([path, "-q", "--format", "json", "-c", sql], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)

    return rows
