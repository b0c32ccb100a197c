"""Cursors, and the other names of PEP 249."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _internal
from ._parameters import given
from .errors import InterfaceError, ProgrammingError

if TYPE_CHECKING:
    from ._connection import Connection

#: The version of PEP 249.
apilevel = "2.0"
#: Threads may share the module and connections.
threadsafety = 2
#: Placeholders are ``?``. ``$1`` and ``$name`` work too.
paramstyle = "qmark"


class TypeObject:
    """A kind of types. It is equal to each type of :attr:`Cursor.description` that is of this kind."""

    def __init__(self, *beginnings: str) -> None:
        self._beginnings = beginnings

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            # The labels of a dictionary have the type that it ends with.
            kind = other.partition(", ")[2] if other.startswith("Dictionary(") else other
            return kind.startswith(self._beginnings)
        return other is self

    __hash__ = object.__hash__


STRING = TypeObject("Utf8", "LargeUtf8")
BINARY = TypeObject("Binary", "LargeBinary", "FixedSizeBinary")
NUMBER = TypeObject("Int", "UInt", "Float", "Decimal", "Boolean")
DATETIME = TypeObject("Date", "Time", "Duration", "Interval")
ROWID = TypeObject("RowId")

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """Return the day of a number of seconds since 1970."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """Return the time of day of a number of seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """Return the time of a number of seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks)


class Cursor:
    """Runs statements as PEP 249 has it. :meth:`Connection.cursor` makes cursors.

    A query runs while its rows are fetched, so few of them are in memory.
    """

    def __init__(self, connection: Connection) -> None:
        #: The number of rows that :meth:`fetchmany` returns by default.
        self.arraysize = 1
        #: The connection of the cursor.
        self.connection = connection
        self._is_closed = False
        self._reset()

    def _reset(self) -> None:
        #: For each column a tuple of seven: its name, its type, four times ``None``, and whether it may have NULL.
        self.description: list[tuple[Any, ...]] | None = None
        #: The number of rows, or -1 if it is not known.
        self.rowcount = -1
        self._stream: _internal.RowStream | None = None
        self._rest: list[tuple[Any, ...]] = []

    def execute(self, operation: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Cursor:
        """Run statements. ``parameters`` are values for the placeholders of a single one, as in :meth:`Connection.sql`."""
        self._check()
        self._end()
        self._reset()
        result = self.connection._session.run(operation, *given(parameters))
        if isinstance(result, _internal.Query):
            self._stream = result.stream()
        elif result is not None:
            self._rest = result.tuples(0, len(result))[::-1]
            is_count = [field[0] for field in result.fields()] == ["count"] and len(result) == 1
            self.rowcount = self._rest[0][0] if is_count else len(result)
        if result is not None:
            self.description = [(name, kind, None, None, None, None, null) for name, kind, null in result.fields()]
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Sequence[Any] | Mapping[str, Any]]) -> Cursor:
        """Run a statement once for each of some parameters. Rows of queries are lost, but for those of the last."""
        total = 0
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
            total = -1 if self.rowcount < 0 or total < 0 else total + self.rowcount
        self.rowcount = total
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, and ``None`` behind the last one."""
        self._check()
        if self.description is None:
            raise ProgrammingError("there are no rows: execute a query first")
        while not self._rest and self._stream is not None:
            batch = self._stream.next()
            if batch is None:
                self._stream = None
                break
            self._rest = batch.tuples(0, len(batch))[::-1]
        return self._rest.pop() if self._rest else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return the next ``size`` rows, or fewer at the end; by default :attr:`arraysize`."""
        rows: list[tuple[Any, ...]] = []
        while len(rows) < (self.arraysize if size is None else size) and (row := self.fetchone()) is not None:
            rows.append(row)
        return rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all further rows."""
        return list(self)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def close(self) -> None:
        """End the cursor, and a query that still runs."""
        self._end()
        self._reset()
        self._is_closed = True

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing. PEP 249 has it."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing. PEP 249 has it."""

    def _check(self) -> None:
        if self._is_closed:
            raise InterfaceError("the cursor is closed")

    def _end(self) -> None:
        if self._stream is not None:
            self._stream.close()
