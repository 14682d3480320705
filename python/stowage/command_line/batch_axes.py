"""The word behind --batch-axes."""

from __future__ import annotations


def batch_axes_of(text: str) -> tuple[int | None, ...]:
    """The axes of "0" or "0,1,none"."""
    return tuple(None if word == "none" else int(word) for word in text.split(","))


batch_axes_of.__name__ = "axes"  # in argparse's message
