"""A call: its arguments by the operator's schema, tensors with their names and the rest, and its
floating-point operations by PyTorch's own formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils.flop_counter import flop_registry

if TYPE_CHECKING:
    from collections.abc import Sequence

LEFT_OUT = {"device", "layout", "pin_memory", "generator", "non_blocking"}


def is_on_device(value: Any) -> bool:
    """Whether it is a tensor with memory on the device. A stand-in for one that is elsewhere
    (plans/host_updates.py) says so itself."""
    return (isinstance(value, torch.Tensor) and value.device.type == "cuda" and
            not getattr(value, "lies_elsewhere", False))


class Signature:
    """What the schema says of an operator; made once an operator."""

    def __init__(self, operator: torch._ops.OpOverload) -> None:
        schema = operator._schema
        overload = schema.overload_name
        self.kernel = schema.name + (f".{overload}" if overload else "")
        self.names = [argument.name for argument in schema.arguments]
        self.written = {argument.name for argument in schema.arguments
                        if argument.alias_info is not None and argument.alias_info.is_write}


class Call:
    """One call: `tensors` are (name, tensor) in the schema's order, lists flattened."""

    def __init__(self, signature: Signature, arguments: tuple[Any, ...],
                 options: dict[str, Any]) -> None:
        self.tensors: list[tuple[str, torch.Tensor]] = []
        self.names: list[str] = []  # of the arguments that hold tensors: "input", "tensors:3"
        self.attributes: dict[str, Any] = {}
        for position, name in enumerate(signature.names):
            if position < len(arguments):
                self.add(name, arguments[position])
            elif name in options:
                self.add(name, options[name])

    def add(self, name: str, value: Any) -> None:
        if value is None or name in LEFT_OUT:
            return
        if isinstance(value, torch.Tensor):
            if is_on_device(value):
                self.tensors.append((name, value))
                self.names.append(name)
        elif isinstance(value, (list, tuple)) and any(
                isinstance(item, torch.Tensor) for item in value):
            self.add_list(name, value)
        else:
            plain = plain_value(value)
            if plain is not None:
                self.attributes[name] = plain

    def add_list(self, name: str, values: Sequence[Any]) -> None:
        kept = [value for value in values if is_on_device(value)]
        if kept:
            self.tensors.extend((name, tensor) for tensor in kept)
            self.names.append(f"{name}:{len(kept)}")
        if any(value is None for value in values):
            # Which of the list's places hold a tensor: x[:, index] has [0, 1].
            self.attributes[f"{name}.given"] = [int(value is not None) for value in values]


def plain_value(value: Any) -> Any:
    """A number, a word or a list of them, of an argument that is no tensor; None: left out."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, torch.memory_format):
        return str(value).removeprefix("torch.")
    if isinstance(value, (list, tuple)):
        items = [plain_value(item) for item in value]
        if all(isinstance(item, (bool, int)) for item in items):
            return [int(item) for item in items]
        if all(isinstance(item, (bool, int, float)) for item in items):
            return float(items[0]) if len(set(items)) == 1 else ",".join(map(repr, items))
    return None


def flops_of(operator: torch._ops.OpOverload, arguments: tuple[Any, ...], options: dict[str, Any],
             result: Any) -> int:
    """A multiply-add counts two; 0 for all other operators."""
    formula = flop_registry.get(operator._overloadpacket)
    if formula is None:
        return 0
    try:
        return int(formula(*arguments, **options, out_val=result))
    except (AssertionError, TypeError, ValueError, NotImplementedError, RuntimeError):
        return 0  # a call of a form that the formula does not know
