"""Files that are written whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TypeAlias

from stowage.errors import StowageError

StrPath: TypeAlias = str | os.PathLike[str]


def check_place(path: StrPath) -> None:
    """Raises StowageError for a path that cannot be written. Called before long work."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise StowageError(f"{path}: there is no folder '{folder}'")
    if os.path.isdir(path):
        raise StowageError(f"{path} is a folder", "name a file in it")
    try:
        with tempfile.TemporaryFile(prefix=".stowage-", dir=folder):
            pass
    except OSError as error:
        raise StowageError(f"{path}: no file can be made in '{folder}': {error.strerror}") from None


def write_whole(path: StrPath, text: str) -> None:
    """Writes the text in UTF-8. Raises StowageError where it cannot. Whatever ends it early, an older
    file is unchanged, and no part of the new one is left."""
    path = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=".stowage-", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise StowageError(f"{path}: {error.strerror}", "nothing was written") from None
