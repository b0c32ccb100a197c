"""SQL over chunked N-dimensional arrays: Zarr, NetCDF, HDF5, TileDB and Tetration ``.tet``.

>>> import gridfusion as gf
>>> rows = gf.sql("SELECT lat, avg(t2m) AS t2m FROM 'examples/data/air.nc' GROUP BY lat ORDER BY lat LIMIT 1")
>>> rows.columns
['lat', 't2m']

The functions of this module use one connection, which the first of them makes. The table functions of SQL are functions here too:
``gf.read_zarr(...)``, ``gf.read_netcdf(...)``, ``gf.array_info(...)``. Those of formats that a later version adds appear by themselves.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from . import errors
from ._connection import Connection, connect
from ._cursor import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Cursor,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    apilevel,
    paramstyle,
    threadsafety,
)
from ._internal import __version__
from ._plot import Plot
from ._relation import Relation
from ._verification import Verification
from .errors import (
    DatabaseError,
    DataError,
    Error,
    FileError,
    IntegrityError,
    InterfaceError,
    InternalError,
    MemoryLimitError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "BINARY",
    "Binary",
    "Connection",
    "Cursor",
    "DATETIME",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "FileError",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "MemoryLimitError",
    "NUMBER",
    "NotSupportedError",
    "OperationalError",
    "Plot",
    "ProgrammingError",
    "ROWID",
    "Relation",
    "STRING",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Verification",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "default_connection",
    "errors",
    "execute",
    "paramstyle",
    "read",
    "register",
    "sql",
    "threadsafety",
    "verify",
]

_lock = threading.Lock()
_default: Connection | None = None


def default_connection() -> Connection:
    """Return the connection that the functions of this module use."""
    global _default
    with _lock:
        if _default is None or _default.is_closed:
            _default = connect()
        return _default


def sql(query: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Relation | None:
    """Run statements on the default connection, as :meth:`Connection.sql` does."""
    return default_connection().sql(query, parameters)


def execute(query: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Relation | None:
    """Run statements to their end on the default connection, as :meth:`Connection.execute` does."""
    return default_connection().execute(query, parameters)


def read(location: str | os.PathLike[str] | list[str], variable: str | None = None, **options: Any) -> Relation:
    """Return the rows of arrays, as :meth:`Connection.read` does."""
    return default_connection().read(location, variable, **options)


def verify(location: str | os.PathLike[str], *, deep: bool = False, **options: Any) -> Verification:
    """Check files or arrays for damage, as :meth:`Connection.verify` does."""
    return default_connection().verify(location, deep=deep, **options)


def register(name: str, data: Any) -> Connection:
    """Make a table of Python data on the default connection, as :meth:`Connection.register` does."""
    return default_connection().register(name, data)


def __getattr__(name: str) -> Callable[..., Relation]:
    # Modules of the standard library and of notebooks ask for names such as `__path__`, which need no connection.
    if not name.startswith("_"):
        connection = default_connection()
        if name in connection.table_functions():
            return getattr(connection, name)
    raise AttributeError(f"module 'gridfusion' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *default_connection().table_functions()})
