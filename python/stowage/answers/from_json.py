"""`read`: the program's JSON as a dataclass whose fields are the JSON's."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, TypeVar, Union

from stowage.errors import StowageError

T = TypeVar("T")


def read(kind: type[T], value: Any, place: str = "the answer") -> T:
    """`value` as a `kind`, a dataclass. A member that `kind` has no field for is left out; it is in a
    newer program's answer. Raises StowageError, which names the member, where one is missing or is of
    another type: the program and this package are of different versions then."""
    made: T = read_any(kind, value, place)
    return made


def read_any(kind: Any, value: Any, place: str) -> Any:
    if kind is Any:
        return value
    origin = typing.get_origin(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in typing.get_args(kind):
            return None
        others = [each for each in typing.get_args(kind) if each is not type(None)]
        return read_any(others[0], value, place)
    if dataclasses.is_dataclass(origin or kind):
        variables = getattr(origin, "__parameters__", None) or ()
        return read_fields(origin or kind, value, place, dict(zip(variables, typing.get_args(kind))))
    if origin is list and isinstance(value, list):
        (item,) = typing.get_args(kind)
        return [read_any(item, each, f"{place}[{i}]") for i, each in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        _, item = typing.get_args(kind)
        return {name: read_any(item, each, f"{place}.{name}") for name, each in value.items()}
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(kind, type) and isinstance(value, kind) and (kind is bool) == isinstance(value, bool):
        return value
    raise StowageError(f"{place} of the program is {value!r}, which this package does not expect",
                       "they are of different versions: STOWAGE_PROGRAM=FILE names another program")


def read_fields(kind: Any, value: Any, place: str, stand_for: dict[Any, Any]) -> Any:
    """`stand_for`: what the type variables of a generic dataclass are."""
    if not isinstance(value, dict):
        raise StowageError(f"{place} of the program is no object, which this package does not expect",
                           "they are of different versions: STOWAGE_PROGRAM=FILE names another program")
    hints = typing.get_type_hints(kind)
    found = {}
    for field in dataclasses.fields(kind):
        member = field.metadata.get("json", field.name)
        if member in value:
            hint = hints[field.name]
            variables = getattr(hint, "__parameters__", None) or ()
            if variables:
                hint = hint[tuple(stand_for[variable] for variable in variables)]
            found[field.name] = read_any(hint, value[member], f"{place}.{member}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise StowageError(
                f"the program's answer has no '{member}' in {place}",
                "they are of different versions: STOWAGE_PROGRAM=FILE names another program")
    return kind(**found)
