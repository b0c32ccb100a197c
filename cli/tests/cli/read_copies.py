"""Reads the files that `copy_types.rs` writes with DuckDB, pandas and pyarrow, and compares types and values with what SQL says.

    python read_copies.py FOLDER

FOLDER has all.parquet, all.csv, all.json and all.arrow, and types.tsv: a line per column with its name, its type in Parquet as DuckDB
names it, and the SQL of its value. The second row of each file is NULL.
"""

import datetime
import decimal
import math
import re
import sys

import duckdb
import pandas
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

folder = sys.argv[1]
TIME = datetime.datetime(2024, 3, 1, 1, 2, 3)


def expected(sql):
    """Returns the Python value of a SQL expression of the test."""
    if "'Timestamp(" in sql or "Timestamp(s))" in sql:
        return TIME
    if "Duration" in sql:
        unit = re.search(r"Duration\((\w+)\)", sql)[1]
        per_second = {"s": 1, "ms": 1e3, "ns": 1e9}[unit]
        return datetime.timedelta(seconds=90061 / per_second)
    if "'Date" in sql:
        return datetime.date(2024, 3, 1)
    if "'Time" in sql:
        return datetime.time(1, 2, 3)
    if "'abc'" in sql:
        return b"abc"
    if "'é'" in sql:
        return "é"
    if sql == "true":
        return True
    number = re.match(r"arrow_cast\('?([^',]+)'?,", sql)[1]
    return float(number) if "Float" in sql else decimal.Decimal(number) if "Decimal" in sql else int(number)


def plain(value):
    """Returns the value inside of lists, structs and maps, in Python's own types."""
    if hasattr(value, "tolist") and not isinstance(value, (pandas.Timestamp, pandas.Timedelta)):
        value = value.tolist()
    while isinstance(value, (list, tuple, dict)):
        if isinstance(value, dict):
            value = value.get("x", next(iter(value.values())))
        elif len(value) == 2:
            value = value[1]
        else:
            value = value[0]
    if isinstance(value, pandas.Timestamp):
        value = value.to_pydatetime()
    if isinstance(value, pandas.Timedelta):
        value = value.to_pytimedelta()
    if isinstance(value, datetime.datetime):
        zone = datetime.timezone(datetime.timedelta(hours=2))
        value = (value.astimezone(zone) if value.tzinfo else value).replace(tzinfo=None)
    return value


def is_same(value, wanted):
    value = plain(value)
    if isinstance(wanted, float):
        value = float(value)
        return value == wanted or math.isnan(value) and math.isnan(wanted)
    if type(wanted) is datetime.date and isinstance(value, datetime.datetime):
        return value == datetime.datetime.combine(wanted, datetime.time())
    if isinstance(wanted, int) and isinstance(value, float):
        wanted = float(wanted)  # pandas keeps integers beside NULL as floats
    if isinstance(wanted, datetime.timedelta) and isinstance(value, int):
        return True  # DuckDB knows no durations of Parquet, and sees the number
    return value == wanted


faults = []


def check(reader, name, sql, value, null):
    wanted = expected(sql)
    try:
        same = is_same(value, wanted)
    except (TypeError, ValueError, KeyError) as error:
        same = f"{type(error).__name__}: {error}"
    if same is not True:
        faults.append(f"{reader}: {name} = {sql}: {value!r} is not {wanted!r} ({same})")
    if not (null is None or pandas.isna(null)):
        faults.append(f"{reader}: {name} = {sql}: {null!r} is not NULL")


with open(f"{folder}/types.tsv", encoding="utf-8") as lines:
    columns = [line.rstrip("\n").split("\t") for line in lines]

duckdb.sql("SET TimeZone = 'UTC'")
table = duckdb.sql(f"SELECT * FROM '{folder}/all.parquet' ORDER BY row")
types = dict(zip(table.columns, map(str, table.types)))
for name, named, sql in columns:
    if types[name] != named:
        faults.append(f"DuckDB: {name} = {sql}: {types[name]} is not {named}")
    value, null = (row[0] for row in table.project(name).fetchall())
    check("DuckDB, Parquet", name, sql, value, null)

by_arrow = {
    "pyarrow, Parquet": pyarrow.parquet.read_table(f"{folder}/all.parquet"),
    "pyarrow, Arrow": pyarrow.ipc.open_file(f"{folder}/all.arrow").read_all(),
}
for reader, table in by_arrow.items():
    for name, _, sql in columns:
        if "'Timestamp" in sql and "Int64" in str(table.schema.field(name).type):
            faults.append(f"{reader}: {name} = {sql}: {table.schema.field(name).type}")
        check(reader, name, sql, *table.column(name).to_pylist())

frame = pandas.read_parquet(f"{folder}/all.parquet")
for name, _, sql in columns:
    check("pandas, Parquet", name, sql, *frame[name])

# Texts: DuckDB casts each to the type that the value has in Parquet.
for kind, reader in ("csv", "read_csv"), ("json", "read_json"):
    known = {name: named for name, named, _ in columns}
    present = [name for name in duckdb.sql(f"DESCRIBE SELECT * FROM '{folder}/all.{kind}'").df()["column_name"] if name != "row"]
    for name, named, sql in columns:
        if name not in present or "BLOB" in named or "Duration" in sql:
            continue  # bytes and durations are texts: hexadecimal, and ISO 8601
        if kind == "csv":
            wanted = {name: "VARCHAR" for name in ["row", *present]}
            types = "{" + ", ".join(f"'{it}': '{of}'" for it, of in wanted.items()) + "}"
            source = f"read_csv('{folder}/all.csv', header = true, columns = {types})"
        else:
            source = f"read_json('{folder}/all.json', columns = {{'row': 'BIGINT', '{name}': '{named}'}})"
        rows = duckdb.sql(f'SELECT CAST("{name}" AS {named}) FROM {source} ORDER BY CAST(row AS BIGINT)').fetchall()
        check(f"DuckDB, {kind}", name, sql, rows[0][0], rows[1][0])

floats = [(name, sql) for name, _, sql in columns if "Float" in sql]
frames = {
    "pandas, JSON": pandas.read_json(f"{folder}/all.json", lines=True, dtype={name: float for name, _ in floats}),
    "pandas, CSV": pandas.read_csv(f"{folder}/all.csv"),
}
for reader, frame in frames.items():
    for name, sql in floats:
        check(reader, name, sql, *frame[name])

print("\n".join(faults))
sys.exit(bool(faults))
