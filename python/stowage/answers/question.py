"""From arguments of Python to the program's command line: the model, and options by their names."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, TypeAlias

from stowage.command_line.program import compute_capability_of
from stowage.errors import StowageError

if TYPE_CHECKING:
    from collections.abc import Mapping

Option: TypeAlias = "str | int | float | bool | None | list[Any] | tuple[Any, ...] | dict[str, Any]"

# The program's name of what a recording decides: record()'s name. The rest is asked of the recorded step.
RECORDED = {"optimizer": "optimizer", "precision": "precision", "mode": "mode", "seq": "seq",
            "optimizer_implementation": "implementation", "accumulation": "micro_batches",
            "loss": "loss", "target": "target", "batch_axes": "batch_axes", "name": "name"}
ONLY_RECORDED = ("target", "batch_axes", "name")  # which the program does not take
EACH_BY_ITSELF = ("set", "layer_dtype", "change")  # options that are given once for each value


@dataclasses.dataclass(frozen=True)
class Question:
    """Words of the program's command line, and what it reads from stdin ("": nothing)."""

    words: list[str]
    text: str = ""


def text_of(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def option_words(name: str, value: Option) -> list[str]:
    """`precision="bf16"`, `lora={"r": 16}`, `checkpoint=True` as the program's words. A list's values are
    joined by commas. None and False: left out."""
    option = "--" + name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        return [option]
    if isinstance(value, dict):
        value = [f"{key}={text_of(each)}" for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        values = [text_of(each) for each in value]
        return ([word for each in values for word in (option, each)] if name in EACH_BY_ITSELF
                else [option, ",".join(values)])
    if isinstance(value, (str, int, float, os.PathLike)):
        return [option, text_of(value)]
    raise StowageError(f"{name}={value!r} is no value of an option",
                       "text, a number, True, a list or a dict of these is")


def is_named(model: Any) -> bool:
    """Whether a model is one that the program reads itself: a shipped name, a file, a folder."""
    return isinstance(model, (str, os.PathLike))


def named_words(model: str | os.PathLike[str]) -> list[str]:
    """The words that name a model. A name that begins with a dash is no option."""
    name = os.fspath(model)
    if not name or name == "-":
        raise StowageError(f"{name!r} is no model", "a model is a name, a path or a module")
    return [f"./{name}" if name.startswith("-") else name]


def asked_of(command: str, model: Any, inputs: Any, options: Mapping[str, Option],
             capability: tuple[int, int] | None = None) -> Question:
    """The question `command` about a model: a name or a path, a recorded step, or a module with example
    inputs, which is recorded first, for the card that `gpu` names (or `capability`)."""
    if is_named(model):
        if inputs is not None:
            raise StowageError(f"{os.fspath(model)} is read by the program, which takes no inputs",
                               "batch= and seq= say their sizes")
        refuse_recorded(options)
        return Question([command, *named_words(model), *words_of(options)])
    document, rest = recorded(model, inputs, options, capability)
    from stowage.document.write import checked_text

    return Question([command, *words_of(rest), "-"], checked_text(document, "the step"))


def words_of(options: Mapping[str, Option]) -> list[str]:
    return [word for name, value in options.items() for word in option_words(name, value)]


def refuse_recorded(options: Mapping[str, Option]) -> None:
    for name in ONLY_RECORDED:
        if options.get(name) is not None:
            raise StowageError(f"{name}= is for a module, which is recorded")


def recorded(model: Any, inputs: Any, options: Mapping[str, Option],
             capability: tuple[int, int] | None) -> tuple[dict[str, Any], dict[str, Option]]:
    """(the step file's document, the options that are asked of it)."""
    from stowage.record import RecordedStep, record

    if isinstance(model, RecordedStep):
        if inputs is not None:
            raise StowageError("a recorded step has its inputs already")
        refuse_recorded(options)
        return model.document, dict(options)
    if not callable(model):
        raise StowageError(f"{type(model).__name__} is no model",
                           "a model is a name, a path, a module with example inputs, or a recorded step")
    if inputs is None:
        raise StowageError("a module is recorded with example inputs",
                           "stowage.check(model, images, ...): values do not count, shapes do")
    card = options.get("gpu")
    if capability is None and isinstance(card, str) and "," not in card and card != "all":
        capability = compute_capability_of(card)
    how: dict[str, Any] = {RECORDED[name]: value for name, value in options.items()
                           if name in RECORDED and value is not None}
    if capability is not None:
        how["compute_capability"] = capability
    step = record(model, inputs, **how)
    return step.document, {name: value for name, value in options.items() if name not in RECORDED}
