"""Files that are written whole, or not at all, by the rules of the program `stowage`
(cli/output/output_file.hpp): a symbolic link is followed, its target is replaced and the link stays; a
device or a pipe is written into, and not replaced."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from typing import TypeAlias

from stowage.errors import StowageError

StrPath: TypeAlias = str | os.PathLike[str]
MOST_LINKS = 40  # as the kernel has it
DESCRIPTORS = ("/dev/fd", "/proc/self/fd")  # folders whose files are the process's own open ones


def check_place(path: StrPath) -> None:
    """Raises StowageError for a path that cannot be written. Called before long work."""
    path = checked_name(path)
    if os.path.isdir(path):
        raise StowageError(f"{path} is a folder", "name a file in it")
    if writes_into(path):
        return
    target = followed(path)
    folder = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(folder):
        raise StowageError(f"{path}: there is no folder '{folder}'")
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise StowageError(f"{path}: {os.strerror(errno.EACCES)}")
    try:
        with tempfile.TemporaryFile(prefix=".stowage-", dir=folder):
            pass
    except OSError as error:
        raise StowageError(f"{path}: no file can be made in '{folder}': {error.strerror}") from None


def write_whole(path: StrPath, text: str) -> None:
    """Writes the text in UTF-8. Raises StowageError where it cannot. Whatever ends it early, an older
    file is unchanged, and no part of the new one is left."""
    path = checked_name(path)
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise StowageError(f"{path}: the text has half of a surrogate pair, "
                           f"{text[error.start:error.end]}, which UTF-8 cannot hold",
                           "nothing was written") from None
    try:
        if writes_into(path):
            write_into(path, content)
        else:
            replace(followed(path), content)
    except OSError as error:
        raise StowageError(f"{path}: {error.strerror}", "nothing was written") from None


def checked_name(path: StrPath) -> str:
    """The path as a text. Raises StowageError where no file can have that name."""
    name = os.fspath(path)
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError:
        encoded = b"\0"
    if not encoded or b"\0" in encoded:
        raise StowageError(f"'{name}' is no name of a file")
    return name


def writes_into(path: str) -> bool:
    """Whether the path is a character device, a pipe or an open file of this process. Raises StowageError
    for a block device and a socket, which are no place for a file."""
    if descriptor_of(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        kind = "a block device" if stat.S_ISBLK(mode) else "a socket"
        raise StowageError(f"{path} is {kind}", "name a file")
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def descriptor_of(path: str) -> int | None:
    """The number of the open file that the path names: 1 of /dev/stdout."""
    for _ in range(MOST_LINKS):
        folder, name = os.path.split(os.path.abspath(path))
        if folder in DESCRIPTORS or folder == f"/proc/{os.getpid()}/fd":
            return int(name) if name.isdigit() else None
        try:
            path = os.path.join(folder, os.readlink(path))
        except OSError:
            return None
    return None


def followed(path: str) -> str:
    """The end of a chain of links, which need not exist yet. Raises StowageError where there is none."""
    at = path
    for _ in range(MOST_LINKS):
        try:
            at = os.path.join(os.path.dirname(at), os.readlink(at))
        except OSError:
            return at
    raise StowageError(f"{path}: {os.strerror(errno.ELOOP)}")


def write_into(path: str, content: bytes) -> None:
    number = descriptor_of(path)
    descriptor = os.open(path, os.O_WRONLY) if number is None else os.dup(number)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def replace(target: str, content: bytes) -> None:
    """Puts a file of that content in the target's place. An older file's mode is kept."""
    folder = os.path.dirname(os.path.abspath(target))
    handle, temporary = tempfile.mkstemp(prefix=".stowage-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode_of(target))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def mode_of(target: str) -> int:
    """That of the file which is there, else the usual one."""
    with contextlib.suppress(OSError):
        return os.stat(target).st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
