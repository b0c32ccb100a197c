"""Relations: queries, whose rows become objects of other libraries."""

from __future__ import annotations

import contextlib
import html
import itertools
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _internal, _plot
from ._plot import Plot
from ._progress import reported
from ._sql import literal, name as quoted_name, quoted
from .errors import Error, NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy
    import pandas
    import polars
    import pyarrow
    import xarray

    from ._connection import Connection

#: The rows that a notebook shows.
SHOWN = 10

_numbers = itertools.count()


class Relation:
    """The rows of a query.

    A relation keeps no rows: each method that needs them runs the query. :meth:`Connection.execute` returns relations that keep theirs.
    Ctrl-C ends a query with ``KeyboardInterrupt``. While a query runs, other threads of Python run too.

    Any library that takes objects with ``__arrow_c_stream__`` takes relations, such as ``pyarrow.table(relation)`` or
    ``duckdb.sql("SELECT * FROM relation")``. The rows are not copied.
    """

    __slots__ = ("_con", "_lock", "_query", "_rest", "_rows", "_stream")

    def __init__(self, con: Connection, query: _internal.Query | None, rows: _internal.Rows | None) -> None:
        self._con = con
        self._query = query
        self._rows = rows
        # What fetchone has still to return.
        self._stream: _internal.RowStream | None = None
        self._rest: list[tuple[Any, ...]] | None = None
        self._lock = threading.Lock()

    @classmethod
    def _of(cls, con: Connection, result: _internal.Query | _internal.Rows | None) -> Relation | None:
        if result is None:
            return None
        if isinstance(result, _internal.Query):
            return cls(con, result, None)
        return cls(con, None, result)

    @property
    def _source(self) -> _internal.Query | _internal.Rows:
        source = self._query if self._rows is None else self._rows
        assert source is not None, "a relation has a query or rows"
        return source

    def _collect(self) -> _internal.Rows:
        source = self._source
        if not isinstance(source, _internal.Query):
            return source
        with reported(self._con.progress) as report:
            return source.collect(report)

    def _cells(self, dims: list[int], keeps_nulls: bool = False) -> tuple[list[int], list[tuple[int, _internal.Rows]]] | None:
        """Return the columns of the axes and all columns without rows, if the query shows a box of an array."""
        if self._query is None or self._rows is not None:
            return None
        with reported(self._con.progress) as report:
            return self._query.cells(dims, keeps_nulls, report)

    def _held(self) -> Relation:
        return Relation(self._con, self._query, self._collect())

    def _first(self, most: int) -> _internal.Rows:
        source = self._source
        return source.limit(most).collect() if isinstance(source, _internal.Query) else source

    # What the rows are

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [field[0] for field in self._source.fields()]

    @property
    def types(self) -> list[str]:
        """The types of the columns, as Arrow names them."""
        return [field[1] for field in self._source.fields()]

    @property
    def schema(self) -> pyarrow.Schema:
        """The names, types and attributes of the columns. Needs pyarrow."""
        import pyarrow

        return pyarrow.schema(self)

    @property
    def dims(self) -> list[str]:
        """The columns that :meth:`xarray` takes as dimensions.

        These are the keys of the topmost ``GROUP BY`` or, without one, the columns with labels of dimensions. The list is empty if there are
        neither.
        """
        columns, facts = self.columns, self._facts()
        keys = [column for column, (_, is_key, _) in zip(columns, facts) if is_key]
        return keys or [column for column, (order, _, _) in zip(columns, facts) if order is not None]

    def _facts(self) -> list[tuple[str | None, bool, dict[str, str]]]:
        if self._query is None:
            return [(None, False, {}) for _ in self._source.fields()]
        return self._query.facts()

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns. Counting often needs no chunk of an array."""
        source = self._source
        rows = source.count() if isinstance(source, _internal.Query) else len(source)
        return rows, len(self.columns)

    def explain(self, *, analyze: bool = False, verbose: bool = False) -> str:
        """Return the plan. With ``analyze``, run it, and return what each operator did."""
        if self._query is None:
            return "the rows are in memory\n"
        rows = self._query.explain(analyze, verbose)
        return "\n".join(f"{kind}\n{text}" for kind, text in rows.tuples(0, len(rows)))

    @property
    def timing(self) -> dict[str, float | int] | None:
        """What the last run that ended took: seconds, rows, chunks and bytes, and requests to object stores.

        ``chunks`` of the arrays are read, pruned without a read, or answered by the stored bounds of their values. :meth:`show` and notebooks
        run another query, of the first rows. ``None`` before the first run.
        """
        return None if self._query is None else self._query.timing()

    def show(self, max_rows: int = 40) -> None:
        """Print the first rows as the program does. Dots stand for more rows."""
        print(self._text(max_rows), end="")

    def _text(self, most: int) -> str:
        return self._con._session.text(self._first(most + 1), most)

    def __repr__(self) -> str:
        dims = self.dims
        columns = (
            f"{column} {kind}{' (dimension)' if column in dims else ''}" for column, kind in zip(self.columns, self.types)
        )
        return f"<gridfusion.Relation: {', '.join(columns)}>"

    def _repr_html_(self) -> str:
        """Return the first ten rows as a table, with bold dimensions."""
        try:
            rows = self._first(SHOWN + 1)
        except Error as error:
            return f"<pre>{html.escape(f'{type(error).__name__}: {error}')}</pre>"
        dims = self.dims
        head = "".join(_head(column, kind, column in dims) for column, kind in zip(self.columns, self.types))
        lines = rows.tuples(0, SHOWN)
        body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in line)}</tr>" for line in lines)
        more = f"<p>The first {SHOWN} rows.</p>" if len(rows) > SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    # The rows

    def arrow(self) -> pyarrow.Table:
        """Return the rows as a table of pyarrow."""
        import pyarrow

        return pyarrow.table(self._collect())

    def df(self) -> pandas.DataFrame:
        """Return the rows as a DataFrame of pandas. Needs pyarrow too. Integers with NULL become floats, as pandas has it."""
        return self.arrow().to_pandas()

    def pl(self) -> polars.DataFrame:
        """Return the rows as a DataFrame of polars. It has no type for intervals, and intervals are refused."""
        import polars

        for column, kind in zip(self.columns, self.types):
            if "Interval(" in kind:
                raise NotSupportedError(f"polars has no type for the intervals of {column!r}; CAST({quoted_name(column)} AS VARCHAR)")
        return polars.DataFrame(self._collect())

    def fetchnumpy(self) -> dict[str, numpy.ndarray]:
        """Return an array of numpy per column.

        A column with NULL is a masked array. Numbers and times can share the memory of the result, and cannot be written then. Texts, and
        values of other types that numpy lacks, are Python objects.
        """
        rows = self._collect()
        return {column: _masked(*numpy_column(rows, at)) for at, column in enumerate(self.columns)}

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows as tuples. NULL is ``None``; timestamps with a time zone are in UTC, and nanoseconds are cut off."""
        rows = self._collect()
        return rows.tuples(0, len(rows))

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, and ``None`` behind the last one.

        The first call runs the query. A call after ``None`` begins again, and so does one after an error or Ctrl-C.
        """
        with self._lock:
            try:
                return self._next()
            except BaseException:
                # Rows that end here must not look complete.
                self._stream = self._rest = None
                raise

    def _next(self) -> tuple[Any, ...] | None:
        if self._stream is None and self._rest is None:
            self._rest = []
            if isinstance(self._source, _internal.Query):
                self._stream = self._source.stream()
            else:
                self._rest = self._source.tuples(0, len(self._source))[::-1]
        while not self._rest and self._stream is not None:
            batch = self._stream.next()
            if batch is None:
                break
            self._rest = batch.tuples(0, len(batch))[::-1]
        if self._rest:
            return self._rest.pop()
        self._stream = self._rest = None
        return None

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Run the query and return its rows in batches of pyarrow, as they come. Few are in memory at once."""
        source = self._source
        return _batches(source.stream() if isinstance(source, _internal.Query) else source)

    def xarray(self, dims: list[str] | None = None, fill_value: Any = None) -> xarray.Dataset:
        """Return the rows as a dataset of xarray, in memory.

        Parameters
        ----------
        dims
            The columns that are dimensions, in this order; by default, :attr:`dims`. All other columns become variables.
        fill_value
            The value of cells without a row, and of NULL; a mapping has a value per variable. By default, floats are NaN, times NaT, and
            texts missing. Integers and Booleans have no such value and need one here.

        Raises
        ------
        ValueError
            If there are no dimensions, two rows have the same labels, a label is NULL, integers need a ``fill_value``, or the rows are so few
            of all cells that the arrays would be out of proportion.

        Notes
        -----
        Labels are in the order of the array that they come from, and ascending if they are computed. Units and other attributes are kept;
        through aggregates, those that stay true. Rows that are a whole grid in its order become arrays without a copy, which cannot be
        written; ``.copy(deep=True)`` makes others.

        The numbers and times that a query shows of a box of an array, or computes per cell, are put to their places. All other rows have
        the labels beside each value. For ``float32`` over three dimensions, they and the arrays need some 20 times the memory of the arrays.
        """
        from ._xarray import dataset

        return dataset(self, dims, fill_value)

    def __arrow_c_schema__(self) -> Any:
        return self._source.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Run the query for another library, which takes its rows as they come.

        Libraries make an exception of their own of an error or Ctrl-C. After Ctrl-C, ``KeyboardInterrupt`` follows.
        """
        return self._source.__arrow_c_stream__(requested_schema)

    def __datafusion_table_provider__(self, session: Any) -> Any:
        """Return the query as a table for the package ``datafusion``: ``context.register_table("t", relation)``."""
        from ._datafusion import checked

        checked()
        if self._query is not None and self._rows is None:
            return self._query.__datafusion_table_provider__(session)
        with self._as_table() as table:
            query = self._con._session.run(f"SELECT * FROM {table}")
            assert isinstance(query, _internal.Query), "SELECT is a query"
            return query.__datafusion_table_provider__(session)

    def plot(
        self,
        kind: str | None = None,
        *,
        title: str | None = None,
        width: int | None = None,
        height: int | None = None,
        facet: str | None = None,
        x_limits: Sequence[Any] | str | None = None,
        y_limits: Sequence[Any] | str | None = None,
        color_limits: Sequence[Any] | str | None = None,
        log: str | Sequence[str] | None = None,
        invert: str | Sequence[str] | None = None,
        colors: str | None = None,
        contours: bool | Sequence[float] | str | None = None,
        coastlines: bool | None = None,
    ) -> Plot:
        """Run the query and draw its rows, as ``gridfusion plot`` does.

        Parameters
        ----------
        kind
            ``"line"``, ``"scatter"``, ``"bars"`` or ``"heatmap"``; by default, what suits the columns.
        title
            A line of text above the plot.
        width, height
            Pixels; by default 1000 and 620, and a map has the height that suits it.
        facet
            The column whose values get a panel each.
        x_limits, y_limits, color_limits
            Both ends, such as ``(0, 10)``; ``None`` for one that follows the values.
        log
            What is logarithmic: ``"x"``, ``"y"``, ``"color"``, or several of them.
        invert
            The axes that run against their usual direction: ``"x"``, ``"y"`` or both.
        colors
            ``"viridis"``, ``"cividis"``, ``"magma"``, ``"grays"``, ``"diverging"`` or ``"categories"``.
        contours
            ``True`` for contour lines over the cells, or their values.
        coastlines
            Whether to draw coastlines; by default, if x and y are longitude and latitude.

        Raises
        ------
        ProgrammingError
            If an option is wrong, or the rows are too many or cannot be plotted.
        """
        given = _plot.options(
            kind=kind,
            title=title,
            width=width,
            height=height,
            facet=facet,
            x_limits=x_limits,
            y_limits=y_limits,
            color_limits=color_limits,
            log=log,
            invert=invert,
            colors=colors,
            contours=None if contours is False else contours,
            coastlines=coastlines,
        )
        if self._query is not None and self._rows is None:
            return Plot(self._query.plot(given))
        with self._as_table() as table:
            query = self._con._session.run(f"SELECT * FROM {table}")
            assert isinstance(query, _internal.Query), "SELECT is a query"
            return Plot(query.plot(given))

    # Where the rows can go

    def create_view(self, name: str) -> Relation:
        """Give the query a name, which SQL of the same connection can use. Replaces a table of that name.

        Rows that :meth:`Connection.execute` keeps become a table; their query does not run again.
        """
        self._con.register(name, self)
        return self._con.table(name)

    def to_parquet(self, path: str | os.PathLike[str], **options: Any) -> int:
        """Write the rows to a Parquet file, which appears when it is complete. Returns their number.

        ``options`` are those of ``COPY``, such as ``compression="zstd(3)"``.
        """
        return self._copy(path, "PARQUET", options)

    def to_csv(self, path: str | os.PathLike[str], **options: Any) -> int:
        """Write the rows to a file of comma-separated values, as :meth:`to_parquet` does."""
        return self._copy(path, "CSV", options)

    def to_json(self, path: str | os.PathLike[str], **options: Any) -> int:
        """Write the rows to a file with a JSON object per line, as :meth:`to_parquet` does."""
        return self._copy(path, "JSON", options)

    def _copy(self, path: str | os.PathLike[str], kind: str, options: Mapping[str, Any]) -> int:
        given = ", ".join(f"{quoted(key)} {literal(value)}" for key, value in options.items())
        suffix = f" TO {quoted(os.fspath(path))} STORED AS {kind}{f' OPTIONS ({given})' if given else ''}"
        if self._query is not None and self._rows is None:
            count = self._query.copy(f"COPY (SELECT 1){suffix}")
            return count.tuples(0, 1)[0][0]
        with self._as_table() as table:
            count = self._con._session.run(f"COPY (SELECT * FROM {table}){suffix}")
        assert isinstance(count, _internal.Rows), "COPY returns the number of rows"
        return count.tuples(0, 1)[0][0]

    @contextlib.contextmanager
    def _as_table(self) -> Iterator[str]:
        """Make a table of the kept rows, and return its name in SQL."""
        session, table = self._con._session, f"gridfusion python {next(_numbers)}"
        session.register_rows(table, self._collect())
        try:
            yield quoted_name(table)
        finally:
            session.unregister(table)


def _batches(source: _internal.RowStream | _internal.Rows) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow

    if isinstance(source, _internal.Rows):
        yield from pyarrow.table(source).to_batches()
        return
    try:
        while (rows := source.next()) is not None:
            yield from pyarrow.table(rows).to_batches()
    finally:
        source.close()


def numpy_column(rows: _internal.Rows, column: int) -> tuple[numpy.ndarray, numpy.ndarray | None]:
    """Return the values of a column, and where they are NULL."""
    import numpy

    values, is_null = rows.column(column)
    mask = None if is_null is None else numpy.asarray(is_null)
    if not isinstance(values, list):
        return numpy.asarray(values), mask
    array = numpy.empty(len(values), dtype=object)
    array[:] = values
    return array, mask


def _masked(values: numpy.ndarray, mask: numpy.ndarray | None) -> numpy.ndarray:
    import numpy

    return values if mask is None else numpy.ma.masked_array(values, mask)


def _head(column: str, kind: str, is_dim: bool) -> str:
    shown = html.escape(column)
    shown = f"<strong>{shown}</strong>" if is_dim else shown
    return f"<th>{shown}<br><small>{html.escape(kind)}{' · dimension' if is_dim else ''}</small></th>"


def _cell(value: Any) -> str:
    if value is None:
        return "<em>NULL</em>"
    text = str(value)
    return html.escape(text if len(text) <= 100 else f"{text[:100]}…")
