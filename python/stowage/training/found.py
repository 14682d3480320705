"""The models and optimizers that a function uses: its arguments and their defaults, its closure, its
globals."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType

DEEPEST = 5  # functions that call functions


def names_used(code: CodeType) -> set[str]:
    """The global names that the code and the functions within it name."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_used(constant)
    return names


class ObjectSearch:
    """`models` and `optimizers` are {name: object}, in the order of being found."""

    def __init__(self) -> None:
        self.models: dict[str, torch.nn.Module] = {}
        self.optimizers: dict[str, torch.optim.Optimizer] = {}
        self.seen: set[int] = set()

    def add(self, name: str, value: Any, depth: int = 0) -> None:
        if id(value) in self.seen or depth > DEEPEST:
            return
        self.seen.add(id(value))
        if isinstance(value, torch.nn.Module):
            self.models[name] = value
        elif isinstance(value, torch.optim.Optimizer):
            self.optimizers[name] = value
        elif isinstance(value, functools.partial):
            self.add(name, value.func, depth + 1)
            self.add_all(f"{name}.", enumerate(value.args), depth + 1)
            self.add_all("", value.keywords.items(), depth + 1)
        elif isinstance(value, types.MethodType):
            self.add("self", value.__self__, depth + 1)
            self.add_function(value.__func__, depth)
        elif isinstance(value, types.FunctionType):
            self.add_function(value, depth)
        elif isinstance(value, (list, tuple)):
            self.add_all(f"{name}.", enumerate(value), depth + 1)
        elif isinstance(value, dict):
            self.add_all(f"{name}.", value.items(), depth + 1)
        elif hasattr(value, "__dict__") and not isinstance(value, (type, types.ModuleType)):
            self.add_all("", list(vars(value).items()), depth + 1)  # a trainer with its model

    def add_all(self, prefix: str, items: Iterable[tuple[Any, Any]], depth: int) -> None:
        for name, value in items:
            self.add(f"{prefix}{name}", value, depth)

    def add_function(self, function: Callable[..., Any], depth: int) -> None:
        function = getattr(function, "__wrapped__", function)
        if not isinstance(function, types.FunctionType):
            return
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                self.add(name, cell.cell_contents, depth + 1)
            except ValueError:
                continue  # not assigned yet
        self.add_all("default", enumerate(function.__defaults__ or ()), depth + 1)
        self.add_all("", (function.__kwdefaults__ or {}).items(), depth + 1)
        for name in sorted(names_used(code)):
            value = function.__globals__.get(name)
            own = getattr(value, "__module__", None) == function.__module__
            if isinstance(value, (torch.nn.Module, torch.optim.Optimizer)) or own:
                self.add(name, value, depth + 1)


def without_parts(models: dict[str, torch.nn.Module]) -> dict[str, torch.nn.Module]:
    """The models that are not part of another of them; one alone needs no name."""
    parts = {id(part) for model in models.values() for part in model.modules()
             if part is not model}
    whole = {name: model for name, model in models.items() if id(model) not in parts and
             next(iter(model.state_dict(keep_vars=True)), None) is not None}
    return {"": next(iter(whole.values()))} if len(whole) == 1 else whole


def found_in(function: Callable[..., Any], arguments: tuple[Any, ...] = (),
             keywords: dict[str, Any] | None = None) -> tuple[
                 dict[str, torch.nn.Module], dict[str, torch.optim.Optimizer]]:
    """(models, optimizers) that the call uses."""
    found = ObjectSearch()
    found.add_all("argument", enumerate(arguments), 0)
    found.add_all("", (keywords or {}).items(), 0)
    found.add("function", function)
    return without_parts(found.models), found.optimizers
