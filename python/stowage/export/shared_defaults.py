"""Attributes that most layers of an operator have alike: the description's `defaults`."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

from .catalogue import OPERATORS, defaults_of, text_of

if TYPE_CHECKING:
    from .blocks import Slot
    from .yaml_text import LayerList, Line

SHARED = ("bias", "eps", "momentum", "in_place", "as")
FEWEST = 3  # layers of the operator, for a default to be worth a line


def share_defaults(lists: list[LayerList]) -> dict[str, dict[str, str]]:
    """Takes the attributes out of the layers of all lists (yaml_text.LayerList) and returns
    {operator: {attribute: text}}. A layer that had the catalogue's default then says so."""
    lines = collections.defaultdict(list)
    for written in lists:
        for line in written.lines:
            if line.operator in OPERATORS:
                lines[line.operator].append(line)
    result: dict[str, dict[str, str]] = {}
    for operator, own in lines.items():
        for name in SHARED:
            found = shared_text(operator, name, own)
            if found is not None:
                result.setdefault(operator, {})[name] = found
                for line in own:
                    line.attributes = with_explicit_default(line.attributes, name, found,
                                                     defaults_of(operator)[name])
    return result


def shared_text(operator: str, name: str, lines: list[Line]) -> str | None:
    """The text that most of the lines have, if it is no argument and the others have a default."""
    texts = [text for line in lines for attribute, text in line.attributes if attribute == name]
    if len(lines) < FEWEST or name not in defaults_of(operator) or not texts:
        return None
    text, count = collections.Counter(texts).most_common(1)[0]
    literal = text in ("true", "false", "timm", "transformers") or text[0].isdigit()
    return text if literal and " " not in text and 2 * count > len(lines) else None


def with_explicit_default(attributes: list[Slot], name: str, shared: str,
                   catalogue_default: Any) -> list[Slot]:
    """The attributes of a layer under a default."""
    if (name, shared) in attributes:
        return [pair for pair in attributes if pair != (name, shared)]
    if any(attribute == name for attribute, _ in attributes):
        return attributes
    return [*attributes, (name, text_of(catalogue_default))]
