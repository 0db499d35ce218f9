"""The frameworks of the adapters, which the package does not install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def from_package(package: str) -> Iterator[None]:
    """Around the imports of a framework: if one fails, the error says how to install the framework."""
    try:
        yield
    except ImportError as error:
        # Subclasses of frameworks may have other arguments.
        kind = ModuleNotFoundError if isinstance(error, ModuleNotFoundError) else ImportError
        hint = f"{error}. This adapter needs its framework: pip install -U {package}"
        raise kind(hint, name=error.name, path=error.path) from error
