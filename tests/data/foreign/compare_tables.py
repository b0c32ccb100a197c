"""Asks the program for facts of all tables of files, and compares them with what xarray and h5py read.

    python3 tests/data/foreign/compare_tables.py PROGRAM FOLDER [PART…]

FOLDER is one that real_files.py wrote; PART selects files by a part of their paths. Each variable gets a verdict:

    equal      the numbers of rows and values, the least and greatest value, sum and mean, the first and last rows,
               and the least and greatest labels are those of xarray or h5py
    refused    no table, or an error, for a reason that the book lists (REFUSED)
    different  on purpose (real_files.DIFFERENT)
    unread     there is a table, and neither xarray nor h5py reads the variable
    unasked    left out by --most
    WRONG      anything else: another answer, another error, or a variable that nothing says is left out

Fails if one is wrong. tests/it/foreign compares cells; this compares answers that the program may have without
reading rows, and finds what is missing.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import cftime  # noqa: E402
import h5py  # noqa: E402
import hdf5plugin  # noqa: E402, F401  h5py needs its filters
import numpy as np  # noqa: E402

import expected  # noqa: E402
import real_files  # noqa: E402

# What the book says is not read ("Unsupported" in docs/netcdf.md and docs/zarr.md), in the program's words.
REFUSED = re.compile(
    "|".join(
        [
            "compound",
            "references",
            "lists of any length",
            "arrays within cells",
            "floats of 16 bytes",
            "a link to the file",
            r"filter \d+ .*is not known",
            "text_as_binary = 'true'",
            # docs/time.md: "a value outside it is an error"
            r"beyond Timestamp\(µs\)",
        ]
    )
)

# The most seconds that a run of the program may take.
SECONDS = 300

# The most statements of a run.
RUN = 100

# The nanoseconds of a unit of durations.
UNITS = {"s": 10**9, "ms": 10**6, "µs": 10**3, "ns": 1}


# ---------------------------------------------------------------------------------------------------- program


def answers(program, statements):
    """Returns the rows of each statement, or the text of its error. One run of the program per `RUN` statements, and one per error."""
    found = []
    while len(found) < len(statements):
        some = statements[len(found) : len(found) + RUN]
        command = [program, "-q", "--format", "json", *(part for sql in some for part in ("-c", sql))]
        outcome = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        answered = list(documents(outcome.stdout.decode()))
        if outcome.returncode:
            lines = outcome.stderr.decode(errors="replace").strip()
            answered.append(lines or f"status {outcome.returncode}")
        # The statements behind one that fails do not run.
        is_whole = len(answered) <= len(some) if outcome.returncode else len(answered) == len(some)
        assert is_whole, f"{len(answered)} answers to {len(some)} statements from {some[0]}"
        found += answered
    return found


def documents(text):
    """Yields JSON documents that follow one another."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        yield document
        while at < len(text) and text[at].isspace():
            at += 1


def quoted(text, mark):
    return mark + text.replace(mark, mark * 2) + mark


def statements(path, listed):
    """Returns the SQL that asks for the facts of a table, its first rows and its last."""
    source = f"read_array({quoted(path, chr(39))}, {quoted(listed['dataset'], chr(39))}, index_columns => 'true')"
    dims = [quoted(dim, '"') for dim in expected.unique(listed["dimensions"])]
    places = ", ".join(quoted(f"{dim}_idx", '"') for dim in expected.unique(listed["dimensions"]))
    variable = listed["dataset"].rpartition("/")[2]
    is_complex = listed["element_type"].startswith("complex")
    parts = (
        {f"value{part}": quoted(variable + part, '"') for part in ("_re", "_im")}
        if is_complex
        else {"value": "value"}
    )
    facts = ["count(*) AS rows"]
    for label, column in [*((f"label{at}", dim) for at, dim in enumerate(dims)), *parts.items()]:
        facts += [f"count({column}) AS {label}_count"]
        for extreme in ("min", "max"):
            facts.append(f"{extreme}({column}) AS {label}_{extreme}")
    order = [f" ORDER BY {places}", f" ORDER BY {places.replace(',', ' DESC,')} DESC"] if dims else ["", ""]
    rows = [f"SELECT * FROM {source}{by} LIMIT 2" for by in order]
    sums = [f"sum({it}) AS {part}_sum, avg({it}) AS {part}_avg" for part, it in parts.items() if is_number(listed)]
    return [f"SELECT {', '.join(facts + sums)} FROM {source}", *rows]


def is_number(listed):
    return listed["data_type"].startswith(("Int", "UInt", "Float"))


# ------------------------------------------------------------------------------------------------- comparison


class Cells:
    """Values or labels as xarray or h5py reads them, and whether a value of JSON is one of them."""

    def __init__(self, values, table):
        facts = table.facts if table is not None else {}
        self.names = facts.get("enum")
        self.counted = table.counted if table is not None else None
        # The error that unpacking may have: relative, and as it is of numbers around this one.
        self.tolerance = 1e-6 if facts.get("packed") else 0.0
        self.around = max(facts.get("offset", 0.0), 1.0)
        self.values = values.ravel()
        if self.values.dtype.kind not in "iubf" or self.names:
            self.values = np.fromiter((self.plain(it) for it in self.values), object, len(self.values))
            self.present = self.values[[it is not None for it in self.values]]
        else:
            self.present = self.values[self.values == self.values]

    def plain(self, value):
        """Returns a number, a truth value, bytes of a text, or a time; None for NULL."""
        if expected.is_null(value):
            return None
        if self.names:
            return self.names.get(int(value))
        if isinstance(value, str):
            return value.encode().rstrip(b"\0")
        if isinstance(value, (bytes, np.void)):
            return bytes(value).rstrip(b"\0")
        text = expected.cell_text(value)
        if isinstance(value, np.timedelta64):
            return int(text)
        return np.datetime64(text, "ns") if "T" in text else value

    def is_equal(self, found, wanted):
        if wanted is None or wanted != wanted or found is None:
            return (wanted is None or wanted != wanted) and found is None
        if isinstance(wanted, bytes):
            return found.encode().rstrip(b"\0") == wanted or found == wanted.hex()
        if isinstance(found, str) and self.counted and self.is_date(found, wanted):
            return True
        if isinstance(wanted, np.datetime64):
            # Tables round to microseconds.
            return abs(np.datetime64(found, "ns") - wanted) <= np.timedelta64(1000, "ns")
        if isinstance(found, str) and not isinstance(wanted, str):
            return False
        if isinstance(wanted, (np.float16, np.float32)) and type(wanted)(found) == wanted:
            return True
        return found == wanted or is_near(found, wanted, self.tolerance, self.around)

    def is_date(self, found, wanted):
        """Whether a date of the calendar is a number of the file, or the instant of a time."""
        parts = re.fullmatch(r"(-?\d+)-(\d\d)-(\d\d)(?:T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?", found)
        if not parts:
            return False
        *whole, fraction = parts.groups(default="0")
        units, calendar = self.counted
        is_instant = isinstance(wanted, np.datetime64)
        if is_instant and calendar not in ("standard", "gregorian"):
            return False
        date = cftime.datetime(*map(int, whole), int(fraction.ljust(6, "0")), calendar=calendar)
        if is_instant:
            text = date.change_calendar("proleptic_gregorian").strftime("%Y-%m-%dT%H:%M:%S").strip().rjust(19, "0")
            return abs(np.datetime64(text, "s") - wanted) < np.timedelta64(1, "s")
        number = cftime.date2num(date, units, calendar)
        return abs(float(number) - float(wanted)) <= 1e-6 * max(abs(float(wanted)), 1.0)

    def extreme(self, of_objects, of_numbers):
        if not self.present.size:
            return None
        return of_objects(self.present) if self.present.dtype.kind == "O" else of_numbers(self.present)


def is_near(found, wanted, tolerance, around):
    numbers = (int, float, np.number)
    if not isinstance(found, numbers) or not isinstance(wanted, numbers):
        return False
    return abs(float(found) - float(wanted)) <= tolerance * max(abs(float(wanted)), around)


def complaints(table, listed, answered):
    """Yields what differs in the answers to `statements`."""
    for answer in answered:
        if isinstance(answer, str):
            yield answer
            return
    [[facts], first, last] = answered
    values = table.values
    if list(values.shape) != listed["shape"]:
        yield f"the shape is {listed['shape']}, expected {list(values.shape)}"
        return
    if facts["rows"] != values.size:
        yield f"{facts['rows']} rows, expected {values.size}"
    columns = []
    for axis, label in enumerate(table.labels):
        length = values.shape[axis]
        cells = Cells(np.arange(length) if label is None else label.values, label)
        columns.append(cells)
        yield from of_column(f"label{axis}", cells, facts, values.size // max(length, 1))
    parts = [values.real, values.imag] if values.dtype.kind == "c" else [values]
    for part, cells in zip(expected.value_columns(table), parts, strict=True):
        columns.append(Cells(cells, table))
        yield from of_column(part, columns[-1], facts, 1)
        if f"{part}_sum" in facts:
            yield from of_sums(part, columns[-1], facts)
    for rows, at in ((first, [0, 1]), (last, [-1, -2])):
        for row, flat in zip(rows, at[: values.size], strict=True):
            yield from of_row(row, columns, values.shape, flat % values.size)


def of_column(what, cells, facts, repeated):
    wanted = {"count": len(cells.present) * repeated}
    if repeated:
        wanted |= {"min": cells.extreme(min, np.min), "max": cells.extreme(max, np.max)}
    for fact, value in wanted.items():
        found = facts[f"{what}_{fact}"]
        if not cells.is_equal(found, value):
            yield f"{fact} of {what} is {found!r}, expected {value!r}"


def of_sums(part, cells, facts):
    numbers = cells.present
    if not numbers.size:
        return
    numbers = numbers.astype("f8")
    size = float(np.sum(np.abs(numbers)))
    # Sums of integers may be too large for 64 bits.
    if not np.isfinite(size) or size > 2.0**62:
        return
    wanted = {"sum": float(np.sum(numbers)), "avg": float(np.mean(numbers))}
    around = {"sum": size, "avg": size / numbers.size}
    for fact, value in wanted.items():
        found = facts[f"{part}_{fact}"]
        if not is_near(found, value, max(cells.tolerance, 1e-9), around[fact]):
            yield f"{fact} of {part} is {found!r}, expected {value!r}"


def of_row(row, columns, shape, flat):
    place = np.unravel_index(flat, shape) if shape else ()
    for (name, found), cells, at in zip(row.items(), columns, [*place, flat, flat], strict=False):
        wanted = cells.values[at]
        if not cells.is_equal(found, wanted):
            yield f"{name} of row {flat} is {found!r}, expected {wanted!r}"


# -------------------------------------------------------------------------------------------------- verdicts


def listings(program, paths):
    """Returns the tables that the program lists for each file: rows of `array_info`, or an error."""
    return answers(program, [f"SELECT * FROM array_info({quoted(str(path), chr(39))})" for path in paths])


def verdicts(program, file, path, listing, most):
    """Yields a table's name, the verdict and the reason, for each variable that either side knows.

    Of a file with more tables than `most`, asks about so many.
    """
    try:
        found, unreadable = expected.tables_of(path)
    except Exception as error:
        # Neither xarray nor h5py opens it.
        found, unreadable = [], {"": str(error)}
    if isinstance(listing, str):
        known = REFUSED.search(listing) or not found
        yield "", "refused" if known else "WRONG", listing
        return
    rows = {row["dataset"]: row for row in listing}
    asked = [table.path for table in found if is_readable(rows.get(table.path))]
    asked = asked[:: -(-len(asked) // most) or 1]
    sql = [statement for name in asked for statement in statements(str(path), rows[name])]
    answered = dict(zip(asked, zip(*[iter(answers(program, sql))] * 3, strict=True), strict=True))
    for table in found:
        row = rows.pop(table.path, None)
        if table.path in answered:
            reasons = list(complaints(table, row, answered[table.path]))
        elif is_readable(row):
            yield table.path, "unasked", ""
            continue
        else:
            reasons = row["warnings"] if row else ["it is not listed, and nothing says why"]
        yield table.path, *verdict(file, table, reasons)
    for name, reason in unreadable.items():
        row = rows.pop(name, None)
        below = [rows.pop(other) for other in list(rows) if other.startswith(f"{name}/")]
        if is_readable(row) or below:
            # Links, to groups too, and types that numpy lacks.
            yield name, "unread", reason
        elif row is None and is_group(path, name):
            continue
        else:
            text = "; ".join(row["warnings"]) if row else ""
            known = REFUSED.search(text)
            yield (
                name,
                "refused" if known else "WRONG",
                text or f"it is not listed, and nothing says why ({reason})",
            )
    for name, row in rows.items():
        yield name, "WRONG", f"only the program lists it ({row['data_type']}, {row['warnings']})"


def is_group(path, name):
    """Whether a name in an HDF5 file, such as a soft link, leads to a group."""
    if not expected.is_plain_hdf5(path):
        return False
    with h5py.File(path) as file:
        return isinstance(file.get(name), h5py.Group)


def is_readable(row):
    return row is not None and row["data_type"] is not None


def verdict(file, table, reasons):
    if not reasons:
        return "equal", ""
    known = real_files.DIFFERENT.get((file, table.path))
    if known:
        return "different", known
    text = "; ".join(reasons)
    return "refused" if REFUSED.search(text) else "WRONG", text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--most", type=int, default=10_000, help="ask about so many tables of a file")
    arguments = parser.parse_args()
    began = time.time()
    paths = [path for folder in real_files.packages(arguments.folder) for path in sorted(real_files.files(folder))]
    paths = [path for path in paths if not arguments.parts or any(part in str(path) for part in arguments.parts)]
    counts = {}
    for path, listing in zip(paths, listings(arguments.program, paths), strict=True):
        file = path.relative_to(arguments.folder).as_posix()
        count = counts.setdefault(file.partition("/")[0], Counter())
        count["files"] += 1
        for table, outcome, reason in verdicts(arguments.program, file, path, listing, arguments.most):
            count[outcome] += 1
            if outcome not in ("equal", "unasked"):
                print(f"{outcome}: {file} {table}: {reason}"[:400])
    columns = ["files", "equal", "refused", "different", "unread", "unasked", "WRONG"]
    print(f"{'':20}", *(f"{column:>9}" for column in columns))
    for package, count in counts.items():
        print(f"{package:20}", *(f"{count[column]:9}" for column in columns))
    total = sum(counts.values(), Counter())
    print(f"{len(counts)} origins, {dict(total)}, {time.time() - began:.0f} s")
    sys.exit(1 if total["WRONG"] else 0)


if __name__ == "__main__":
    main()
