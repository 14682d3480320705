"""The catalogue of layers: its operators, the defaults of their attributes, and values as a
description writes them.

operators.json is what `stowage ops --format json` says of names, types and defaults; the test
python_operators holds the two against each other (tests/python/operator_table.py).
"""

from __future__ import annotations

import json
import pathlib
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .layers import Layer

# Attributes that are written even where they have their default, since a reader of the description
# would have to look that up.
ALWAYS_WRITTEN = {
    "argmax": {"keep"}, "argmin": {"keep"}, "compare": {"value"}, "concat": {"axis"},
    "drop_path": {"p"}, "dropout": {"p"}, "feature_dropout": {"p"}, "hardtanh": {"minimum", "maximum"},
    "log_softmax": {"axis"}, "masked_fill": {"value"}, "max": {"keep"}, "min": {"keep"},
    "prelu": {"parameters"}, "relative_position_bias": {"flat_index"}, "scale": {"shape"},
    "scatter": {"value"}, "slice": {"axis"}, "softmax": {"axis"}, "stack": {"axis"},
    "tril": {"diagonal"}, "triu": {"diagonal"}}


class Attribute(NamedTuple):
    """An operator's attribute. One number stands for a list of equal numbers where
    `is_fixed_list`: the list has a number an axis."""

    default: Any  # None: it has none
    is_fixed_list: bool


def value_of(text: str | None, type_name: str) -> Any:
    """The default that the table writes as `text`; a list of equal numbers as one number where the
    list's length is fixed."""
    if text is None:
        return None
    if type_name == "true or false":
        return text == "true"
    if text.startswith("["):
        return [number(word) for word in text.strip("[]").split(", ") if word]
    return number(text) if type_name in ("integer", "number") else text


def number(text: str) -> int | float:
    """The number that the text is: an int where it can be one."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def read_table() -> dict[str, dict[str, Attribute]]:
    """{operator: {attribute's name: Attribute}}."""
    path = pathlib.Path(__file__).parent / "operators.json"
    table: dict[str, dict[str, Attribute]] = {}
    for row in json.loads(path.read_text(encoding="utf-8"))["ops"]:
        table[row["name"]] = attributes = {}
        for attribute in row["attributes"]:
            # "2 integers" is a list of fixed length. So is upsample's `size`, which says no number
            # because one operator serves images of one, two and three axes.
            fixed = attribute["type"][0].isdigit() or (row["name"], attribute["name"]) == (
                "upsample", "size")
            default = value_of(attribute["default"], attribute["type"])
            attributes[attribute["name"]] = Attribute(as_one_number(default) if fixed else default,
                                                      fixed)
    return table


def as_one_number(value: Any) -> Any:
    """A list of equal numbers as that number; any other value as it is."""
    if isinstance(value, list) and len(set(map(str, value))) == 1:
        return value[0]
    return value


TABLE = read_table()
OPERATORS = frozenset(TABLE)


def defaults_of(operator: str) -> dict[str, Any]:
    """{attribute: default} of what may be left out of a description."""
    defaults = {name: attribute.default for name, attribute in TABLE.get(operator, {}).items()
                if attribute.default is not None
                and name not in ALWAYS_WRITTEN.get(operator, ())}
    return {"frozen": False, **defaults}


def shortened(operator: str, name: str, value: Any) -> Any:
    """A list of equal numbers as one number, where the catalogue reads that."""
    attribute = TABLE.get(operator, {}).get(name)
    return as_one_number(value) if attribute is not None and attribute.is_fixed_list else value


def attributes_of(layer: Layer) -> dict[str, Any]:
    """The layer's attributes, short. Defaults are left out where no number stands for them: those
    of a number stay, since another instance of the block may have another."""
    defaults = defaults_of(layer.operator)
    result = {}
    for name, value in layer.attributes.items():
        value = shortened(layer.operator, name, value)
        if isinstance(value, (str, list)) and value == defaults.get(name):
            continue
        result[name] = value
    return result


def text_of(value: Any) -> str:
    """The value as a description writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, float):
        text = repr(round(value, 10)) if abs(value) > 1e-4 else repr(value)
        return text.removesuffix(".0").replace("e-0", "e-").replace("inf", ".inf")
    return str(value)
