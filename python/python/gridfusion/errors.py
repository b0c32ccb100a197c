"""The exceptions of gridfusion: the names of PEP 249, below :class:`Error`.

Some are also one of Python's own exceptions, so that code which catches ``OSError`` or ``MemoryError`` works as it is.
"""

import builtins


class Warning(builtins.UserWarning):
    """Something that is not in a result, such as a file that cannot be read and was left out."""


class Error(Exception):
    """Any error of gridfusion."""


class InterfaceError(Error):
    """The package is used wrongly, such as a connection that is closed."""


class DatabaseError(Error):
    """A query failed."""


class DataError(DatabaseError, ValueError):
    """Values or files are wrong: a division by zero, a damaged file."""


class OperationalError(DatabaseError):
    """Something outside of the query failed."""


class FileError(OperationalError, OSError):
    """A file or an object store cannot be read or written."""


class MemoryLimitError(OperationalError, MemoryError):
    """The memory limit of the connection does not suffice."""


class IntegrityError(DatabaseError):
    """For PEP 249 only: gridfusion has no constraints."""


class InternalError(DatabaseError):
    """A fault of gridfusion."""


class ProgrammingError(DatabaseError):
    """The request is wrong: its SQL, a name, an option."""


class NotSupportedError(DatabaseError, NotImplementedError):
    """This version cannot do it."""
