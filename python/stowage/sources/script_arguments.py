"""A Python file of the user's, run with its own words in sys.argv."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from stowage.errors import StowageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def script_arguments(path: str, arguments: Sequence[str]) -> Iterator[None]:
    """While active, sys.argv is that of `python path arguments`. Raises StowageError where the file
    ends the process."""
    before = sys.argv
    sys.argv = [path, *arguments]
    try:
        yield
    except SystemExit as ended:
        if isinstance(ended.code, str):
            raise StowageError(f"{path} ended before its step: {ended.code}") from None
        raise StowageError(f"{path} ended with exit code {ended.code or 0} before its step",
                           "its own options stand after --: record train.py -o s.json -- "
                           "--epochs 1") from None
    finally:
        sys.argv = before
