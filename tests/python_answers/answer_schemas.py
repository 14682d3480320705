#!/usr/bin/env python3
"""JSON Schemas of the answers, made from the dataclasses that Python reads them into, and of files.

    tests/python_answers/answer_schemas.py            compares docs/schemas with them; 1: they differ
    tests/python_answers/answer_schemas.py --write    writes docs/schemas
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import sys
import types
import typing
from typing import Any, Union

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from command_schemas import command_documents  # noqa: E402
from file_schemas import DRAFT, file_documents  # noqa: E402

from stowage.answers.difference import Difference  # noqa: E402
from stowage.answers.largest_batch import Batch  # noqa: E402
from stowage.answers.memory import Check, ServingCheck  # noqa: E402
from stowage.answers.placement import PlanAnswer, Proposal, PytorchProposal  # noqa: E402
from stowage.answers.table import Table  # noqa: E402

FOLDER = ROOT / "docs/schemas"
ANSWERS: dict[str, tuple[Any, str]] = {
    "check": (Check, "stowage check MODEL --format json, of one step on one card"),
    "serving-check": (ServingCheck, "stowage check MODEL --context-length N --format json"),
    "batch": (Batch, "stowage batch MODEL --format json, of one model on one card"),
    "table": (Table, "stowage check|batch --format json, of several models or cards"),
    "diff": (Difference, "stowage diff BEFORE AFTER --gpu NAME --format json"),
    "plan": (PlanAnswer[Proposal], "stowage plan MODEL --format json"),
    "plan-for-pytorch": (PlanAnswer[PytorchProposal], "stowage plan MODEL --for pytorch --format json")}
SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}
NOT_IN_JSON = {"Table": {"text"}}  # which Python adds


def schema_of(kind: Any, stand_for: dict[Any, Any]) -> dict[str, Any]:
    """The schema of a type; `stand_for`: what the type variables of a generic dataclass are."""
    kind = stand_for.get(kind, kind)
    if kind is Any:
        return {}
    if kind in SIMPLE:
        return {"type": SIMPLE[kind]}
    origin = typing.get_origin(kind)
    if origin in (Union, types.UnionType):
        others = [schema_of(each, stand_for) for each in typing.get_args(kind) if each is not type(None)]
        return {"anyOf": [*others, {"type": "null"}]}
    if dataclasses.is_dataclass(origin or kind):
        variables = getattr(origin, "__parameters__", None) or ()
        return object_of(origin or kind, dict(zip(variables, typing.get_args(kind))))
    if origin is list:
        return {"type": "array", "items": schema_of(typing.get_args(kind)[0], stand_for)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(typing.get_args(kind)[1], stand_for)}
    raise TypeError(f"{kind} has no schema")


def object_of(kind: Any, stand_for: dict[Any, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    properties, required = {}, []
    for field in dataclasses.fields(kind):
        if field.name in NOT_IN_JSON.get(kind.__name__, ()):
            continue
        name = field.metadata.get("json", field.name)
        properties[name] = schema_of(hints[field.name], stand_for)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def schema_text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=1) + "\n"


def documents() -> dict[str, str]:
    """{file's name: its text}"""
    answers = {f"{name}.schema.json": {**DRAFT, "title": title, **schema_of(kind, {})}
               for name, (kind, title) in ANSWERS.items()}
    schemas = {**answers, **command_documents(), **file_documents()}
    return {name: schema_text(schema) for name, schema in schemas.items()}


def main() -> int:
    made = documents()
    if "--write" in sys.argv[1:]:
        FOLDER.mkdir(exist_ok=True)
        for name, text in made.items():
            (FOLDER / name).write_text(text)
        return 0
    there = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    differing = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    for name in differing:
        print(f"docs/schemas/{name} is not as its source has it; {sys.argv[0]} --write")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
