"""Random SQL over the rows that libtiledb read, with the rows that SQL must return.

Python answers the queries, not libtiledb. Where a fragment lacks an attribute, SQL sees the fill
value, but a query condition of libtiledb is false. NaN and NaT are NULL, as in tables by default.
"""

NOT_A_TIME = -2**63
UNITS = {"SEC": "Second", "MS": "Millisecond", "US": "Microsecond", "NS": "Nanosecond"}
COMPARISONS = {"=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b,
               "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}


def is_time(kind):
    return kind.startswith(("DATETIME_", "TIME_"))


def value_of(kind, cell):
    """The SQL value of a cell: `None` for NULL, NaN and NaT."""
    if kind.startswith("FLOAT") and isinstance(cell, str):
        return None if cell == "NaN" else float(cell)
    if is_time(kind) and cell == NOT_A_TIME:
        return None
    return cell


def literal(kind, value):
    """A value as SQL; `None` if SQL has no literal of this type."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        if "\0" in value:
            return None
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, (list, dict)):
        return None
    if kind == "DATETIME_DAY":
        return f"arrow_cast(CAST({value} AS INT), 'Date32')" if abs(value) < 2**31 else None
    if kind.startswith("DATETIME_"):
        unit = UNITS.get(kind.removeprefix("DATETIME_"))
        cast = f"arrow_cast(CAST({value} AS BIGINT), 'Timestamp({unit}, None)')"
        return cast if unit and abs(value) < 2**40 else None
    if kind.startswith("TIME_"):
        return None
    if kind.startswith("FLOAT"):
        return repr(value) if abs(value) < 1e30 else None
    return str(value) if value > -2**62 else None


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Table:
    """The columns and rows of one read."""

    def __init__(self, rng, columns, rows, dimensions):
        self.rng, self.columns, self.rows, self.dimensions = rng, columns, rows, dimensions

    def values(self, at):
        kind = self.columns[at][1]
        return [value_of(kind, row[at]) for row in self.rows]

    def predicate(self, depth=2):
        """A condition as SQL, and whether each row fulfils it."""
        if depth > 0 and self.rng.random() < 0.5:
            word = self.rng.choice(["AND", "OR"])
            parts = [self.predicate(depth - 1) for _ in range(self.rng.randint(2, 3))]
            both = all if word == "AND" else any
            holds = [both(row) for row in zip(*(part[1] for part in parts))]
            return "(" + f" {word} ".join(part[0] for part in parts) + ")", holds
        return self.leaf()

    def leaf(self):
        at = self.rng.randrange(len(self.columns))
        name, kind = self.columns[at]
        values = self.values(at)
        known = sorted({v for v in values if not isinstance(v, (list, dict, type(None)))})
        pool = [text for text in (literal(kind, v) for v in known) if text is not None]
        if not pool or self.rng.random() < 0.15:
            if kind.startswith("FLOAT"):
                return "1 = 1", [True] * len(values)
            is_null = self.rng.random() < 0.5
            test = "IS NULL" if is_null else "IS NOT NULL"
            return f"{quoted(name)} {test}", [(v is None) == is_null for v in values]
        known = [v for v in known if literal(kind, v) is not None]
        return self.comparison(name, kind, values, known)

    def comparison(self, name, kind, values, known):
        way = self.rng.random()
        if way < 0.6 or isinstance(known[0], bool):
            sign = self.rng.choice(list(COMPARISONS))
            with_ = self.rng.choice(known)
            holds = [v is not None and COMPARISONS[sign](v, with_) for v in values]
            return f"{quoted(name)} {sign} {literal(kind, with_)}", holds
        if way < 0.8:
            low, high = sorted(self.rng.choices(known, k=2))
            holds = [v is not None and low <= v <= high for v in values]
            return (f"{quoted(name)} BETWEEN {literal(kind, low)} AND {literal(kind, high)}", holds)
        members = self.rng.sample(known, min(len(known), self.rng.randint(1, 4)))
        inside = self.rng.random() < 0.7
        holds = [v is not None and (v in members) == inside for v in values]
        word = "IN" if inside else "NOT IN"
        return f"{quoted(name)} {word} ({', '.join(literal(kind, m) for m in members)})", holds

    def filtered(self):
        """SELECT * with a condition."""
        sql, holds = self.predicate()
        rows = [row for row, keep in zip(self.rows, holds) if keep]
        return {"select": "*", "tail": f"WHERE {sql}", "columns": self.columns, "rows": rows}

    def aggregated(self):
        """Counts, bounds and sums, which statistics of tiles could answer."""
        sql, holds = self.predicate(1) if self.rng.random() < 0.4 else ("1 = 1", None)
        rows = [row for row, keep in zip(self.rows, holds) if keep] if holds else self.rows
        select, columns, cells = ["count(*) AS n"], [["n", "INT64"]], [len(rows)]
        for at, (name, kind) in enumerate(self.columns):
            values = [v for v in (value_of(kind, row[at]) for row in rows) if v is not None]
            for function, result in self.aggregates(kind, values):
                alias = f"{function}_{at}"
                select.append(f"{function}({quoted(name)}) AS {alias}")
                columns.append([alias, kind if function in ("min", "max") else "INT64"])
                cells.append(result)
        tail = "" if sql == "1 = 1" else f"WHERE {sql}"
        return {"select": ", ".join(select), "tail": tail, "columns": columns, "rows": [cells]}

    @staticmethod
    def aggregates(kind, values):
        yield "count", len(values)
        is_scalar = all(isinstance(value, (int, str)) for value in values)
        if not values or not is_scalar or kind == "BOOL" or kind.startswith(("FLOAT", "TIME_")):
            return
        yield "min", min(values)
        yield "max", max(values)
        if "INT" in kind and all(abs(value) < 2**40 for value in values):
            yield "sum", sum(values)

    def ordered(self):
        """Coordinates in the order of SQL, which plans may take from the order of the cells."""
        names = self.columns[:self.dimensions]
        first = self.rng.randrange(self.dimensions)
        turned = [*range(first, self.dimensions), *range(first)]
        down = self.rng.random() < 0.3
        count = self.rng.choice([1, 5, 10**6])
        keys = [[value_of(names[i][1], row[i]) for i in turned] for row in self.rows]
        order = sorted(range(len(keys)), key=lambda at: keys[at], reverse=down)[:count]
        rows = [[self.rows[at][i] for i in turned] for at in order]
        wanted = [quoted(names[i][0]) for i in turned]
        by = ", ".join(f"{name} DESC" if down else name for name in wanted)
        return {"select": ", ".join(wanted), "tail": f"ORDER BY {by} LIMIT {count}",
                "columns": [names[i] for i in turned], "rows": rows, "ordered": True}
