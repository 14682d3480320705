"""A model's layers as Stowage's own description, by torch.export.

    text = stowage.export.export(source)      # a stowage.sources.Source

    describe.py    the whole of an export
    capture.py     traces the model: ATen operations, with sizes in batch and sequence (sizes.py)
    convert.py     operations to layers, by the rules of operators/, which call layers.py
    catalogue.py   which layers there are, and what their attributes' defaults are
    tree.py        the module hierarchy around the layers; optional.py: layers that some blocks lack
    blocks.py      modules of one structure; arguments.py, sequences.py: the numbers that differ
    yaml_text.py   the text; shared_defaults.py: attributes that most layers have alike
    command.py     `python -m stowage export`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from stowage.sources.source import Example, Source


def export(source: Source, other_seq: tuple[int, Callable[[int], Example]] | None = None) -> str:
    """The description's text of a Source; StowageError where it cannot be one."""
    from .describe import converted, description  # not before: they need torch, and help does not

    return description(source.name, source.description, converted(source, other_seq), source.seq)


__all__ = ["export"]
