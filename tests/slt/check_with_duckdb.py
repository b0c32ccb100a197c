"""Runs tests/slt/formats/*.slt, zarr.slt and netcdf.slt with DuckDB, and compares the answers.

    python3 check_with_duckdb.py [--write] [FILE…]

`formats/data.sql` has the data. With --write, the script writes DuckDB's answers and their types into the files, where the
tests find them. Records with `skipif duckdb` are left as they are. The script needs DuckDB. For zarr.slt and netcdf.slt, it
also needs xarray, zarr and netCDF4, with which it reads the files that `read_zarr` and other functions name.
"""

import argparse
import datetime
import decimal
import math
import pathlib
import re
import sys
import warnings

import duckdb

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Of stores without consolidated metadata.
warnings.filterwarnings("ignore", category=RuntimeWarning)
# A table function over arrays: its paths, and the variables if it names them.
READS = re.compile(r"read_(?:zarr|netcdf|array)\((\[[^]]*\]|'[^']*')(?:, '([^']*)')?\)")
CHARS = {bool: "B", int: "I", float: "R", decimal.Decimal: "R", str: "T", datetime.date: "D", datetime.datetime: "P"}


def session(path):
    connection = duckdb.connect()
    # As in DataFusion and PostgreSQL.
    connection.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
    if path.parent.name == "formats":
        connection.execute((path.parent / "data.sql").read_text())
    return connection


def cell(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, (float, decimal.Decimal)):
        return repr(float(value))
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return str(value) or "(empty)"


def char(column):
    kinds = {type(value) for value in column if value is not None}
    return CHARS[kinds.pop()] if len(kinds) == 1 else "?"


def frame(path, variables):
    """The rows of variables over the same dimensions, as xarray reads them."""
    import xarray

    path = ROOT / path
    group = variables[0].rpartition("/")[0] if variables else None
    engine = "zarr" if path.is_dir() else "netcdf4"
    data = xarray.open_dataset(path, engine=engine, group=group or None)
    most = max(variable.ndim for variable in data.data_vars.values())
    names = [name.rpartition("/")[2] for name in variables] or [it for it in data.data_vars if data[it].ndim == most]
    dims = [str(it) for it in data[names[0]].dims]
    rows = data[names].to_dataframe().reset_index()[[*dims, *names]]
    rows = rows.rename(columns={names[0]: "value"}) if len(variables) == 1 else rows
    for name in rows.columns:
        if rows[name].dtype.kind == "M":
            rows[name] = rows[name].astype("datetime64[us]")
        if len(rows) and isinstance(rows[name].iloc[0], bytes):
            rows[name] = rows[name].str.decode("utf-8")
    # NaN is NULL.
    return rows.astype(object).where(rows.notna(), None) if rows.isna().any().any() else rows


def with_tables(connection, sql):
    """Makes a table of each table function, and returns the SQL over these tables."""
    import pandas

    def table(found):
        variables = found[2].split(",") if found[2] else []
        rows = pandas.concat([frame(path, variables) for path in re.findall(r"'([^']*)'", found[1])])
        name = f"rows_{len(TABLES)}"
        TABLES.append(rows)
        connection.register(name, rows)
        return name

    return READS.sub(table, sql)


TABLES = []


def records(text):
    """The file in pieces: records end with a blank line."""
    return re.split(r"(\n\n+)", text)


def run(connection, record):
    """Runs a record, and returns it with DuckDB's answer; `None` if it has none."""
    lines = record.split("\n")
    first = next((at for at, line in enumerate(lines) if line and not line.startswith("#")), None)
    if first is None:
        return None
    skipped = False
    while lines[first].startswith(("skipif", "onlyif")):
        kind, label = lines[first].split()
        skipped |= (label == "duckdb") == (kind == "skipif") if label == "duckdb" else False
        first += 1
    if skipped:
        return None
    head, body = lines[first], lines[first + 1:]
    if head == "statement ok":
        connection.execute(with_tables(connection, "\n".join(body)))
        return None
    if not head.startswith("query"):
        return None
    end = body.index("----") if "----" in body else len(body)
    sql = "\n".join(body[:end])
    rows = connection.execute(with_tables(connection, sql)).fetchall()
    words = head.split()
    types = "".join(char(column) for column in zip(*rows)) if rows else words[1]
    types = "".join(was if new == "?" else new for was, new in zip(words[1].ljust(len(types), "?"), types))
    answer = [" ".join(cell(value) for value in row) for row in rows]
    if "rowsort" in words:
        answer.sort()
    head = " ".join(["query", types, *words[2:]])
    return "\n".join([*lines[:first], head, *body[:end], "----", *answer])


def agree(a, b):
    def same(x, y):
        try:
            return x == y or ("." in x and math.isclose(float(x), float(y), rel_tol=1e-12))
        except ValueError:
            return False

    a, b = a.split(), b.split()
    return len(a) == len(b) and all(map(same, a, b))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    files = arguments.files or sorted((HERE / "formats").glob("*.slt")) + [HERE / "zarr.slt", HERE / "netcdf.slt"]
    checked = failed = 0
    for path in files:
        connection = session(path.resolve())
        pieces = records(path.read_text().rstrip("\n"))
        for at, piece in enumerate(pieces):
            try:
                answered = run(connection, piece)
            except Exception as error:
                answered = f"{type(error).__name__}: {error}"
                if arguments.write:
                    sys.exit(f"{path}: {piece}\n{answered}")
            if answered is None:
                continue
            checked += 1
            if arguments.write:
                pieces[at] = answered
            elif not agree(piece, answered):
                failed += 1
                print(f"{path}:\n{piece}\n-- DuckDB:\n{answered}\n")
        if arguments.write:
            path.write_text("".join(pieces) + "\n")
    print(f"{checked} queries, {failed} differ")
    sys.exit(failed > 0 or checked == 0)


if __name__ == "__main__":
    main()
