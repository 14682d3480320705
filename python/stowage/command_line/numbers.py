"""Numbers on a command line."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """For argparse: a whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return number
