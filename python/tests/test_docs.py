"""The Python of README.md and docs/python.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_blocks_run(page, tmp_path, monkeypatch):
    for library in ["pandas", "pyarrow", "xarray", "netCDF4"]:
        pytest.importorskip(library)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    if page == "README.md":
        assert dict(names["celsius"].sizes)["lon"] == 24
    else:
        assert dict(names["climate"].sizes)["month"] == 12 and (tmp_path / "climate.nc").exists()
