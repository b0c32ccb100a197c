"""Writes random sparse arrays, and the rows that libtiledb reads from them.

    python3 tests/data/tiledb/random_sparse.py DIRECTORY [FIRST COUNT]

`tests/it/tiledb/sparse_libtiledb.rs` runs this, and reads the same rows with SQL. Needs numpy and
TileDB-Py 0.36 (`pip install tiledb`); ends with exit code 3 without them. A seed gives the same
array on every run, apart from UUIDs.

Beside each array is `<name>.expected.json`: `history` lists the operations, and `reads` the queries with
their results. Cells are encoded as in README.md, but enumerated attributes show their labels.

Times are small, fixed numbers. The first schema file is renamed, because libtiledb names it by the
clock.
"""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True

try:
    import tiledb
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(3)

from cells import KEY
from sparse_cells import context, fields_of, open_array, read_rows, settings, write_cells
from sparse_conditions import condition
from sparse_queries import Table
from sparse_schemas import (COORDS_FILTERS, OFFSET_FILTERS, ORDERS, VALIDITY_FILTERS, attribute,
                            cell, dimensions, enumerated, filters)

# All times have as many digits, because libtiledb compares the names of schema files as text.
FIRST_TIME = 1_000_000
NAMES = ["a", "b", "c", "Wert", "e f", "g", "h", "i"]
REFUSALS = (tiledb.TileDBError, tiledb.libtiledb.TileDBError, ValueError)


class RandomArray:
    """An array, and what was done to it."""

    def __init__(self, uri, seed):
        self.uri, self.rng = uri, random.Random(seed)
        self.time, self.writes = FIRST_TIME, {}
        self.names, self.dropped, self.in_deletes = NAMES.copy(), {}, set()
        self.key = KEY if self.rng.random() < 0.1 else None
        self.current_domain = None
        self.history = [self.create()]

    def create(self):
        rng = self.rng
        cell_order = rng.choice([*ORDERS, *ORDERS, "hilbert"])
        made = dimensions(rng)
        self.coordinates = [values for _, values in made]
        attrs, enums = zip(*(self.new_attribute() for _ in range(rng.randint(1, 4))))
        self.has_duplicates = rng.random() < 0.3
        pipelines = {"coords_filters": filters(rng, COORDS_FILTERS),
                     "offsets_filters": filters(rng, OFFSET_FILTERS),
                     "validity_filters": filters(rng, VALIDITY_FILTERS)}
        schema = tiledb.ArraySchema(
            tiledb.Domain(*(dim for dim, _ in made)), attrs, sparse=True, cell_order=cell_order,
            tile_order=rng.choice(ORDERS), capacity=rng.choice([1, 2, 3, 5, 10, 50]),
            allows_duplicates=self.has_duplicates, enums=[enum for some in enums for enum in some],
            ctx=context(self.key),
            **{name: steps for name, steps in pipelines.items() if steps is not None})
        if rng.random() < 0.6 and all(dim.dtype.kind in "iu" for dim, _ in made):
            self.current_domain = [sorted(rng.sample(values, 2)) for values in self.coordinates]
            schema.set_current_domain(self.rectangle(schema.domain))
        tiledb.Array.create(str(self.uri), schema, key=self.key, ctx=context(self.key))
        folder = self.uri / "__schema"
        [file] = [entry for entry in folder.iterdir() if entry.is_file()]
        uuid = file.name.rsplit("_", 1)[1]
        file.rename(folder / f"__{FIRST_TIME}_{FIRST_TIME}_{uuid}")
        return f"create, {cell_order}, duplicates {self.has_duplicates}, {self.current_domain}"

    def rectangle(self, domain):
        """The current domain for a schema."""
        rectangle = tiledb.NDRectangle(context(self.key), domain)
        for number, (low, high) in enumerate(self.current_domain):
            rectangle.set_range(number, low, high)
        current = tiledb.CurrentDomain(context(self.key))
        current.set_ndrectangle(rectangle)
        return current

    def new_attribute(self):
        """An attribute, and a list of at most one enumeration."""
        name = self.names.pop(0)
        if self.rng.random() < 0.15:
            attr, made = enumerated(self.rng, name)
            return attr, [made]
        return attribute(self.rng, name), []

    def open(self, mode="r", timestamp=None):
        return open_array(self.uri, mode, timestamp, self.key)

    def later(self):
        self.time += self.rng.randint(1, 9)
        return self.time

    def write_time(self):
        """A time without a write: for equal coordinates and times, libtiledb shows an arbitrary cell."""
        if self.writes and self.rng.random() < 0.15:
            past = self.rng.randint(FIRST_TIME + 1, self.time)
            if past not in self.writes:
                return past
        return self.later()

    def writable(self, number):
        """The coordinates of a dimension that the current domain has."""
        values = self.coordinates[number]
        if self.current_domain is None:
            return values
        low, high = self.current_domain[number]
        return [value for value in values if low <= value <= high]

    def write(self):
        at, rng = self.write_time(), self.rng
        pools = [self.writable(number) for number in range(len(self.coordinates))]
        count = rng.choice([1, 4, 15, 40])
        cells = [tuple(rng.choice(values) for values in pools) for _ in range(count)]
        if not self.has_duplicates:
            cells = list(dict.fromkeys(cells))
        with self.open("w", at) as array:
            fields, columns = fields_of(array), []
            for number, field in enumerate(fields):
                values = [c[number] for c in cells] if field.is_dimension else [
                    cell(rng, field) for _ in cells]
                columns.append((field, values))
            self.writes[at] = {field.name for field in fields}
            write_cells(array, columns)
        return f"write {len(cells)} cells at {at}"

    def delete(self):
        at = self.time if self.rng.random() < 0.3 else self.later()
        with self.open() as array:
            text, names = condition(self.rng, fields_of(array), self.coordinates)
        with self.open("d", at) as array:
            array.query(cond=text).submit()
        # If a later schema lacks an attribute of a condition, libtiledb cannot read the array.
        self.in_deletes |= names
        return f"delete {text} at {at}"

    def evolve_with(self, change):
        """Applies a change of the schema at a later time."""
        at = self.later()
        evolution = tiledb.ArraySchemaEvolution(ctx=context(self.key))
        change(evolution)
        evolution.timestamp(at)
        evolution.array_evolve(str(self.uri))
        return at

    def drop(self):
        """Drops an attribute that no delete refers to."""
        with self.open() as array:
            attrs = [array.schema.attr(i) for i in range(array.schema.nattr)]
        free = [attr for attr in attrs if attr.name not in self.in_deletes]
        if not free or len(attrs) == 1:
            return "nothing to drop"
        attr = self.rng.choice(free)
        at = self.evolve_with(lambda evolution: evolution.drop_attribute(attr.name))
        if attr.enum_label is None:
            self.dropped[attr.name] = attr
        return f"drop {attr.name} at {at}"

    def add(self):
        """Adds a new attribute, or one that was dropped."""
        if self.dropped and self.rng.random() < 0.6:
            name = self.rng.choice(sorted(self.dropped))
            attr, enums = self.dropped.pop(name), []
        elif self.names:
            attr, enums = self.new_attribute()
        else:
            return "nothing to add"

        def change(evolution):
            for enum in enums:
                evolution.add_enumeration(enum)
            evolution.add_attribute(attr)

        return f"add {attr!r} at {self.evolve_with(change)}"

    def extend(self):
        """Adds a label to an enumeration, or grows the current domain."""
        if self.current_domain is not None:
            self.current_domain = [
                sorted([min(low, self.rng.choice(values)), max(high, self.rng.choice(values))])
                for (low, high), values in zip(self.current_domain, self.coordinates)]
            with self.open() as array:
                current = self.rectangle(array.schema.domain)
            at = self.evolve_with(lambda evolution: evolution.expand_current_domain(current))
            return f"current domain {self.current_domain} at {at}"
        with self.open() as array:
            enums = sorted({field.enum for field in fields_of(array) if field.enum})
            if not enums:
                return "nothing to extend"
            enum = array.enum(self.rng.choice(enums))
            values = list(enum.values())
            is_text = isinstance(values[0], str)
            extended = enum.extend([f"new {len(values)}" if is_text else 1000 + len(values)])
        at = self.evolve_with(lambda evolution: evolution.extend_enumeration(extended))
        return f"extend {enum.name} at {at}"

    def can_consolidate(self, start, end):
        """Whether a fragment in the window has all texts and lists; without one, libtiledb crashes."""
        with self.open() as array:
            wanted = {field.name for field in fields_of(array) if field.isvar}
        return any(start <= at <= end and wanted <= names for at, names in self.writes.items())

    def consolidate(self):
        mode = self.rng.choice(["fragments", "fragments", "fragments", "commits", "fragment_meta"])
        options = {"sm.consolidation.mode": mode, "sm.mem.total_budget": "100000000"}
        if mode == "fragments":
            window = [FIRST_TIME, self.time]
            if self.rng.random() < 0.4:
                window = sorted(self.rng.randint(*window) for _ in window)
                options["sm.consolidation.timestamp_start"] = str(window[0])
                options["sm.consolidation.timestamp_end"] = str(window[1])
            if not self.can_consolidate(*window):
                return "nothing to consolidate"
            if self.rng.random() < 0.15:
                options["sm.consolidation.purge_deleted_cells"] = "true"
        config = tiledb.Config(settings(self.key, **options))
        tiledb.consolidate(str(self.uri), config=config, ctx=tiledb.Ctx(config))
        if self.rng.random() < 0.5:
            config = tiledb.Config(settings(self.key, **{"sm.vacuum.mode": mode}))
            tiledb.vacuum(str(self.uri), config=config, ctx=tiledb.Ctx(config))
            options["vacuum"] = "yes"
        return f"consolidate {options}"

    def step(self, ways):
        way = self.rng.choice(ways)
        try:
            self.history.append(way())
        except REFUSALS as refused:
            # libtiledb refuses some conditions and filters. The array stays valid.
            self.history.append(f"{way.__name__} refused: {refused}"[:200])

    def run(self):
        for _ in range(self.rng.randint(1, 2)):
            self.step([self.write])
        ways = [self.write] * 10 + [self.delete] * 4 + [self.consolidate] * 5
        if self.key is None:
            # libtiledb 2.30 does not encrypt the schemas of an evolution.
            ways += [self.drop] + [self.add] * 2 + [self.extend] * (4 if self.current_domain else 1)
        for _ in range(self.rng.randint(0, 12)):
            self.step(ways)

    def read(self, timestamp):
        with self.open(timestamp=timestamp) as array:
            columns, rows = read_rows(array)
        shown = list(timestamp) if isinstance(timestamp, tuple) else timestamp
        return {"timestamp": shown, "columns": columns, "rows": rows}

    def timestamps(self):
        """Now, times at and next to operations, and windows of time."""
        rng, last = self.rng, self.time
        times = [rng.randint(FIRST_TIME, last + 1) for _ in range(3)]
        for at in rng.sample(sorted(self.writes), min(3, len(self.writes))):
            times.append(at - rng.randint(0, 1))
        windows = [tuple(sorted(rng.randint(FIRST_TIME, last) for _ in range(2)))
                   for _ in range(3)]
        return list(dict.fromkeys([None, *times, *windows]))

    def reads(self):
        """The expected results of reads and queries."""
        reads = []
        for timestamp in self.timestamps():
            try:
                whole = self.read(timestamp)
            except REFUSALS as refused:
                self.history.append(f"read of {timestamp} refused: {refused}"[:200])
                continue
            reads.append({**whole, "select": "*", "tail": ""})
            if whole["rows"]:
                reads += self.queries(whole, 6 if timestamp is None else 1)
        return reads

    def queries(self, whole, count):
        table = Table(self.rng, whole["columns"], whole["rows"], len(self.coordinates))
        made = [table.filtered() for _ in range(count)]
        made += [table.ordered(), table.aggregated(), table.aggregated()]
        return [{"timestamp": whole["timestamp"], **query} for query in made]


def by_column(read):
    """A read as JSON, with the cells of each column together."""
    rows = read.pop("rows")
    cells = zip(*rows) if rows else [()] * len(read["columns"])
    columns = [{"name": name, "type": kind, "cells": list(column)}
               for (name, kind), column in zip(read["columns"], cells)]
    return {**read, "rows": len(rows), "columns": columns}


def make(directory, seed):
    """Writes an array and its expected rows."""
    name = f"random_{seed}"
    shutil.rmtree(directory / name, ignore_errors=True)
    array = RandomArray(directory / name, seed)
    array.run()
    reads = [by_column(read) for read in array.reads()]
    expected = {"name": name, "history": array.history, "reads": reads}
    if array.key:
        expected["encryption_key"] = array.key
    text = json.dumps(expected, allow_nan=False)
    (directory / f"{name}.expected.json").write_text(text)


def make_in_other_processes(directory, first, count):
    """Makes arrays in other processes; skips the seeds for which libtiledb crashes."""
    seed, end = first, first + count
    while seed < end:
        worker = [sys.executable, __file__, str(directory), str(seed), str(end - seed), "--worker"]
        status = subprocess.run(worker).returncode
        if status == 0:
            return
        if status > 0:
            sys.exit(status)
        while (directory / f"random_{seed}.expected.json").exists():
            seed += 1
        shutil.rmtree(directory / f"random_{seed}", ignore_errors=True)
        print(f"seed {seed}: libtiledb crashes with signal {-status}, skipped")
        seed += 1


def main():
    directory = Path(sys.argv[1])
    first, count = (int(number) for number in sys.argv[2:4]) if len(sys.argv) > 2 else (0, 20)
    if "--worker" in sys.argv:
        for seed in range(first, first + count):
            make(directory, seed)
        return
    directory.mkdir(parents=True, exist_ok=True)
    for seed in range(first, first + count):
        (directory / f"random_{seed}.expected.json").unlink(missing_ok=True)
    make_in_other_processes(directory, first, count)


if __name__ == "__main__":
    main()
