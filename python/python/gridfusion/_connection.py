"""Connections: sessions with tables, settings and a memory limit."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _internal
from ._cursor import Cursor
from ._parameters import given
from ._progress import Report
from ._relation import Relation
from ._sql import call, name as quoted_name, quoted
from ._verification import Verification
from .errors import InterfaceError, NotSupportedError, ProgrammingError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Location = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

#: The setting that ``threads`` is in SQL.
THREADS = "datafusion.execution.target_partitions"


def connect(
    *,
    memory_limit: str | int | None = None,
    threads: int | None = None,
    root: str | os.PathLike[str] | None = None,
    workers: Sequence[str] | None = None,
    progress: bool | Report | None = None,
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> Connection:
    """Make a connection. Each has tables and settings of its own; threads of the process are shared.

    Parameters
    ----------
    memory_limit
        The most memory of queries, such as ``"2g"``, or a number of bytes. Large sorts and aggregations then use files.
    threads
        The number of parts in which a query runs at once; by default, one per core.
    root
        The folder whose local files queries may read and write; by default, all files.
    workers
        URLs of processes that run parts of queries.
    progress
        ``True`` shows a bar, of tqdm if that is installed, while a query of more than half a second collects its rows. A function gets the
        chunks that are done, all chunks or 0 if that is not known, and the bytes that were read, ten times per second from then on.
    options, **more
        Settings of gridfusion such as ``reduce_memory=2**31``, and options of object stores such as ``{"aws.region": "eu-west-1"}``.

    Raises
    ------
    ProgrammingError
        If an option is unknown or has a wrong value.

    Examples
    --------
    >>> with connect(memory_limit="1g", threads=2) as con:
    ...     con.sql("SELECT 1 + 1 AS two").fetchall()
    [(2,)]
    """
    given: dict[str, Any] = {"memory_limit": memory_limit, "root": root}
    if workers is not None:
        given["workers"] = ",".join(workers)
    if threads is not None:
        given[THREADS] = _threads(threads)
    given = {name: value for name, value in given.items() if value is not None}
    given |= {**(options or {}), **more}
    return Connection(_internal.Session([(name, _text(value)) for name, value in given.items()]), progress)


def _threads(value: int) -> int:
    if value < 1:
        raise ProgrammingError(f"threads = {value}, expected at least 1")
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


class Connection:
    """A session with tables and settings. Threads may share it.

    :func:`connect` makes connections. One that is used in a ``with`` statement is closed at its end.
    """

    __slots__ = ("__weakref__", "_open", "progress")

    def __init__(self, session: _internal.Session, progress: bool | Report | None = None) -> None:
        self._open: _internal.Session | None = session
        #: How the progress of queries is shown, as in :func:`connect`.
        self.progress = progress

    @property
    def _session(self) -> _internal.Session:
        if self._open is None:
            raise InterfaceError("the connection is closed")
        return self._open

    def sql(self, query: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Relation | None:
        """Run statements, and return the rows of the last one.

        A query runs when its rows are asked for, and again each time they are. All other statements run at once.

        Parameters
        ----------
        query
            The statements. ``?``, ``$1`` and ``$name`` are placeholders for values.
        parameters
            A list of values for ``?`` or ``$1``, or a dictionary for ``$name``: ``None``, numbers, texts, bytes, dates, times, ``Decimal``,
            and scalars of numpy and pandas. There is a single statement then. Values are never read as SQL.

        Returns
        -------
        Relation or None
            ``None`` if the last statement has no rows, such as ``CREATE VIEW`` or ``SET``.
        """
        return Relation._of(self, self._session.run(query, *given(parameters)))

    def execute(self, query: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Relation | None:
        """Run statements, and keep the rows of the last one in memory. Parameters are those of :meth:`sql`."""
        relation = self.sql(query, parameters)
        return None if relation is None else relation._held()

    def read(self, location: Location, variable: str | None = None, **options: Any) -> Relation:
        """Return the rows of arrays or files of any format.

        Parameters
        ----------
        location
            A path, a URL, a pattern such as ``"climate/*.zarr"``, or a list of them.
        variable
            The array to read; by default, all variables that share their dimensions.
        **options
            Options of the format, as SQL has them.
        """
        try:
            if isinstance(location, (str, os.PathLike)) and variable is None and not options:
                return self._rows_of(self._text_of_read(location))
            return self._call("read_array", location, *([] if variable is None else [variable]), **options)
        except ProgrammingError as error:
            # SQL has an option where Python has a parameter.
            text = str(error).replace("the option 'dataset'", "variable").replace("option 'dataset'", "variable")
            if text == str(error):
                raise
            raise ProgrammingError(text) from None

    @staticmethod
    def _text_of_read(location: str | os.PathLike[str]) -> str:
        return f"SELECT * FROM {quoted(os.fspath(location))}"

    def info(self, location: str | os.PathLike[str], **options: Any) -> Relation:
        """Return a row with facts per array or variable of a location: names, shapes, types, sizes."""
        return self._call("array_info", location, **options)

    def verify(self, location: str | os.PathLike[str], *, deep: bool = False, **options: Any) -> Verification:
        """Check the files or arrays at a location for damage, as ``gridfusion verify`` does.

        Parameters
        ----------
        location
            A path or URL of a file, an array, a group, or a folder of them.
        deep
            Whether to decode every cell too.
        **options
            Options of the format, as SQL has them.
        """
        settings = [(name, _text(value)) for name, value in options.items()]
        return Verification(json.loads(self._session.verify(os.fspath(location), settings, deep)))

    def register(self, name: str, data: Any) -> Connection:
        """Make a table of Python data, in place of one of the same name.

        Parameters
        ----------
        name
            The name of the table. In SQL, a name with capitals needs double quotes.
        data
            A :class:`Relation`, which becomes a view if it is of this connection and keeps no rows; an object with
            ``__arrow_c_stream__``, such as tables of pyarrow, polars and DuckDB; a DataFrame or Series of pandas, with a column per named
            level of its index, which needs pyarrow; or an ``xarray.Dataset`` or ``DataArray``, with a column per dimension, variable and
            coordinate. A Series or ``DataArray`` without a name becomes the column ``value``.

        Notes
        -----
        Rows are read once, and share the memory of ``data``. A dataset stays an array, so that aggregations reduce it without making rows.
        Variables in memory and in row-major order are not copied: do not change them while the table is there. Those of dask, and those that
        xarray has not loaded, are computed chunk by chunk, when a query reads them. A dataset that is just what ``open_dataset`` returned
        for a file is read from the file instead. NaN is NULL, as in files.

        Returns
        -------
        Connection
            This connection.
        """
        session = self._session
        if isinstance(data, Relation) and data._con is self and data._query is not None and data._rows is None:
            session.create_view(name, data._query)
        elif isinstance(data, Relation):
            session.register_rows(name, data._collect())
        elif type(data).__module__.partition(".")[0] == "xarray":
            from ._datasets import arrays
            from ._reopened import reopened

            rows = reopened(self, data)
            if rows is None:
                session.register_arrays(name, *arrays(data))
            else:
                session.create_view(name, rows._query)
        else:
            session.register(name, _stream(data))
        return self

    def unregister(self, name: str) -> None:
        """Remove a table that :meth:`register` made."""
        if not self._session.unregister(name):
            raise ProgrammingError(f"there is no table {name!r}")

    def tables(self) -> list[str]:
        """Return the names of all tables and views, sorted. A name outside of the default schema has its schema in front."""
        return sorted(self._names())

    def _names(self) -> dict[str, tuple[str, ...]]:
        """Return the parts of the name of each table."""
        rows = self._rows_of("SHOW TABLES").fetchall()
        public = ("datafusion", "public")
        return {row[2] if row[:2] == public else f"{row[1]}.{row[2]}": row[:3] for row in rows}

    def table(self, name: str) -> Relation:
        """Return the rows of a table or view, by a name as :meth:`tables` returns it."""
        parts: Sequence[str] = [name]
        if "." in name:
            # A table may have a dot in its own name, or a schema in front of it.
            parts = self._names().get(name) or name.split(".")
        return self._rows_of(f"SELECT * FROM {'.'.join(map(quoted_name, parts))}")

    def set(self, name: str, value: Any) -> None:
        """Set a setting, such as ``threads``, ``reduce_memory`` or ``datafusion.execution.batch_size``, for this connection."""
        if name in ("memory_limit", "root", "workers"):
            raise ProgrammingError(f"{name} is fixed when a connection is made: connect({name}=…)")
        if name == "threads":
            name, value = THREADS, _threads(value)
        self._session.set(name, _text(value))

    def table_functions(self) -> list[str]:
        """Return the names of the table functions of SQL. Each is also a method, which takes what the function takes."""
        return self._session.table_functions()

    def table_function(self, name: str) -> Any:
        """Return a table function for the package ``datafusion``: ``context.register_udtf(datafusion.udtf(function, name))``.

        Its arrays are opened and read by this connection.
        """
        from ._datafusion import checked

        checked()
        if name not in self.table_functions():
            raise ProgrammingError(f"there is no table function {name!r}; there are {', '.join(self.table_functions())}")
        return self._session.table_function(name)

    def cursor(self) -> Cursor:
        """Return a cursor of PEP 249, for code that works with any database."""
        self._session
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: each statement is complete when it has run."""
        self._session

    def rollback(self) -> None:
        """Raise :class:`NotSupportedError`: there are no transactions."""
        raise NotSupportedError("gridfusion has no transactions: what a statement has written stays")

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed."""
        return self._open is None

    def close(self) -> None:
        """Close the connection. Its tables are gone. Relations still return their rows, but ``show`` and ``create_view`` need it."""
        self._open = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Callable[..., Relation]:
        if self.is_closed and not name.startswith("_"):
            raise AttributeError(f"'Connection' object has no attribute {name!r}, or it is a table function: the connection is closed")
        if not name.startswith("_") and name in self.table_functions():

            def function(*arguments: Any, **options: Any) -> Relation:
                return self._call(name, *arguments, **options)

            function.__name__ = function.__qualname__ = name
            function.__doc__ = f"Return the rows of the table function ``{name}`` of SQL."
            return function
        raise AttributeError(f"'Connection' object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        functions = [] if self.is_closed else self.table_functions()
        return [*super().__dir__(), *functions]

    def __repr__(self) -> str:
        return f"<gridfusion.Connection, {'closed' if self.is_closed else 'open'}>"

    def _call(self, name: str, *arguments: Any, **options: Any) -> Relation:
        return self._rows_of(f"SELECT * FROM {call(name, *arguments, **options)}")

    def _rows_of(self, query: str) -> Relation:
        relation = self.sql(query)
        assert relation is not None, "a query has rows"
        return relation


def _stream(data: Any) -> Any:
    """Return an object with ``__arrow_c_stream__`` that has the rows of ``data``."""
    module = type(data).__module__.partition(".")[0]
    if module in ("pandas", "polars") and type(data).__name__ == "Series":
        data = data.to_frame("value" if data.name in (None, "") else data.name)
    if module == "pandas" and hasattr(data, "columns"):
        data = data.reset_index(drop=all(level is None for level in data.index.names))
    if not hasattr(data, "__arrow_c_stream__") or type(data).__name__ == "ChunkedArray":
        raise TypeError(
            f"a table cannot be made of {type(data).__qualname__}; give an object with __arrow_c_stream__, such as a table of pyarrow, "
            "polars or pandas, an xarray.Dataset, or a Relation"
        )
    return data
