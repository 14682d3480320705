"""Which line of the user's source is running: the innermost frame that is not PyTorch's."""

from __future__ import annotations

import os
import pathlib
import sys
import sysconfig
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from types import FrameType, TracebackType

TORCH = str(pathlib.Path(torch.__file__).parent) + os.sep
STOWAGE = str(pathlib.Path(__file__).parent.parent) + os.sep
STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
PACKAGES = [sysconfig.get_paths()[name] + os.sep for name in ("purelib", "platlib")]

display_names: dict[str, str | None] = {}  # what `shown` has answered


def display_name(file: str) -> str | None:
    """How a file is named: below the working folder or the installed packages, without their path;
    None: it is PyTorch's, Python's or ours."""
    if file in display_names:
        return display_names[file]
    name: str | None = file
    if file.startswith("<") or file.startswith((TORCH, STOWAGE)):
        name = None
    elif file.startswith(STANDARD) and "site-packages" not in file:
        name = None
    else:
        name = file
        for folder in (os.getcwd() + os.sep, *PACKAGES):
            name = name.removeprefix(folder)
        name = name if not os.path.isabs(name) else os.path.basename(name)
    display_names[file] = name
    return name


def place() -> str:
    """"net.py:12", or "" where no frame is the user's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = display_name(frame.f_code.co_filename)
        if name is not None:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def place_of_traceback(traceback: TracebackType | None) -> str:
    """The innermost frame of the user's in an exception's traceback."""
    found = ""
    while traceback is not None:
        name = display_name(traceback.tb_frame.f_code.co_filename)
        if name is not None:
            found = f"{name}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found
