"""A step file's text, and the file."""

from __future__ import annotations

import json
from typing import Any

from stowage.document.check import Unreadable, check_readable
from stowage.errors import StowageError
from stowage.whole_file import StrPath, write_whole

LARGEST_BYTES = 64 * 2 ** 20  # that the reader takes


def text_of(document: dict[str, Any]) -> str:
    """JSON with a table's row a line."""
    lines = []
    for key, value in document.items():
        lines.append(f" {json.dumps(key)}: {value_text(value, key)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def value_text(value: Any, key: str) -> str:
    if key in ("step", "evaluation"):
        members = [f"  {json.dumps(name)}: {value_text(part, name)}" for name, part in value.items()]
        return "{\n" + ",\n".join(members) + "\n }"
    if isinstance(value, list) and value and isinstance(value[0], (list, dict)):
        return "[\n" + ",\n".join("  " + compact(row) for row in value) + "\n ]"
    return compact(value)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def checked_text(document: dict[str, Any], name: StrPath) -> str:
    """The file's text. Raises StowageError where the program would not read it; `name` is the file's."""
    try:
        check_readable(document)
    except Unreadable as reason:
        raise StowageError(f"{name}: `stowage` would refuse this recording: {reason}",
                           "nothing was written; please report it with the step that was recorded"
                           ) from None
    text = text_of(document)
    if len(text) > LARGEST_BYTES:  # json.dumps writes ASCII
        raise StowageError(f"the step has {len(text) >> 20} MiB of text; 64 MiB are read",
                           "record fewer layers or micro-batches")
    return text


def write(document: dict[str, Any], path: StrPath) -> None:
    """Writes the file. Raises StowageError as checked_text, and where it cannot be written."""
    write_whole(path, checked_text(document, path))
