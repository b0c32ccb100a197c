"""Runs the Python of xarray.md over the example files, and prints what each expression gives.

    python3 docs/run_xarray.py          needs xarray, netCDF4 and pyarrow, and gridfusion on the path

No test needs it. It is how the two sides of that page are compared.
"""

import ast
import io
import os
import re
import subprocess
import tempfile
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent


def dataset(file, dims, **columns):
    """The tables of an example file as an xarray dataset, by way of CSV."""
    arrays = []
    for table, dtype in columns.items():
        command = ["gridfusion", ROOT / "examples/data" / file, "-q", "--format", "csv"]
        command += ["-c", f"SELECT * FROM {table} ORDER BY {', '.join(dims)}"]
        rows = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        dates = [dim for dim in dims if dim == "time"]
        frame = pd.read_csv(io.StringIO(rows), na_values="NULL", parse_dates=dates)
        arrays.append(frame.set_index(dims)["value"].astype(dtype).rename(table))
    found = pd.concat(arrays, axis=1).astype("f8").to_xarray()  # SQL adds in 64 bits too
    return found.isel(lat=slice(None, None, -1))  # as in the file, from north to south


def run(code, names):
    """Runs statements as the interactive interpreter does."""
    for statement in ast.parse(code).body:
        source = ast.unparse(statement)
        if isinstance(statement, ast.Expr):
            value = eval(source, names)
            print(f">>> {source}", *([] if value is None else [getattr(value, "values", value)]), sep="\n")
        else:
            exec(source, names)


def main():
    page = (ROOT / "docs/xarray.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        dataset("climate.tet", ["time", "lat", "lon"], t2m="f4", tp="f8").to_netcdf("climate.nc")
        dataset("land.tet", ["lat", "lon"], land="u1").to_netcdf("land.nc")
        names = {}
        for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            run(code, names)


main()
