"""Checks of files."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

import gridfusion as gf


def test_a_whole_file(con, air):
    found = con.verify(air)
    assert found.ok and found.status == "ok" and found.path == air and not found.deep
    assert found.findings == [] and {check["status"] for check in found.checks} == {"ok"}
    deep = gf.verify(air, deep=True)
    assert deep.deep and len(deep.checks) > len(found.checks)
    assert repr(deep).startswith(f"<gridfusion.Verification of {air}: ok, {len(deep.checks)} checks>")


@pytest.fixture
def damaged(data, tmp_path):
    path = tmp_path / "damaged.tet"
    content = bytearray((data / "stations.tet").read_bytes())
    content[920], content[4906] = 9, 0
    path.write_bytes(content)
    return path


def test_a_damaged_file(con, damaged):
    found = con.verify(damaged, deep=True)
    assert not found.ok and found.status == "failed"
    assert {"chunk_coords", "chunk_decode"} <= {it["check"] for it in found.findings}
    (coords,) = [it for it in found.findings if it["check"] == "chunk_coords"]
    assert coords["dataset"] == "precipitation" and coords["offset"] == 920 and coords["path"] == str(damaged)
    assert f"failed   chunk_coords: {coords['message']}" in repr(found)
    pandas = pytest.importorskip("pandas")
    assert len(pandas.DataFrame(found.findings)) == len(found.findings)


def test_findings_are_those_of_the_program(con, damaged, program):
    done = subprocess.run(
        [os.environ["GRIDFUSION_PROGRAM"], "verify", "--json", str(damaged)], capture_output=True, text=True, check=False
    )
    checks = [check for subject in json.loads(done.stdout)["subjects"] for check in subject["checks"]]
    found = con.verify(damaged)
    assert [it["check"] for it in found.checks] == [it["check"] for it in checks]
    assert [it["message"] for it in found.findings] == [it["message"] for check in checks for it in check["findings"]]


def test_files_that_cannot_be_opened(con, tmp_path, air):
    found = con.verify(tmp_path / "none.nc")
    assert found.status == "failed" and found.findings[0]["check"] == "open"
    with pytest.raises(gf.ProgrammingError, match="no_such"):
        con.verify(air, no_such=1)


def test_the_root_holds(data, tmp_path):
    with gf.connect(root=tmp_path) as con:
        try:
            found = con.verify(data / "air.nc")
        except gf.Error as error:
            assert "outside" in str(error) or "root" in str(error)
        else:
            assert not found.ok
