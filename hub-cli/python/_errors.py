"""The errors and the warning that a package gives its callers, each with a stable class name."""

import warnings


class PackageError(Exception):
    """The base of every error that the package raises by itself."""


class BadIndex(PackageError, ValueError):
    """index.json, or a module file that it names, is not what the format says: the package is damaged or was altered."""


class BadArguments(PackageError, TypeError):
    """The arguments of a call do not fit the operation's interface: rank, shape or dtype."""


class NoModule(PackageError, ValueError):
    """The package holds no compiled TPU module for the dtypes and dimensions of a call."""


_said: set[str] = set()


def warn_once(message: str) -> None:
    """Warns with a RuntimeWarning, the first time that `message` is seen in this process."""
    if message not in _said:
        _said.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=3)
