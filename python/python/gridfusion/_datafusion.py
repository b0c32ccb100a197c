"""Tables for the package ``datafusion``, which plans queries by the same library in another copy."""

from __future__ import annotations

import importlib.metadata

from .errors import NotSupportedError

#: The major version whose tables have the same layout in memory.
MAJOR = "55"


def checked() -> None:
    """Raise an error unless the installed package fits."""
    try:
        found = importlib.metadata.version("datafusion")
    except importlib.metadata.PackageNotFoundError:
        raise NotSupportedError("the package datafusion is not installed; install datafusion>=55,<56") from None
    if found.partition(".")[0] != MAJOR:
        raise NotSupportedError(f"datafusion {found} has tables of another layout; install datafusion>=55,<56")
