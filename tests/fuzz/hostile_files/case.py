"""A hostile case: the files and the command that reads them."""

from __future__ import annotations

import pathlib
from typing import NamedTuple

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent.parent


class Hostile(NamedTuple):
    """Files by name (a text or bytes), and the command; {} in it is the folder that they lie in."""

    name: str
    files: dict[str, bytes]
    command: str


def text(content: str) -> bytes:
    return content.encode("utf-8", "surrogatepass")
