"""Calls of a function that returns a model with its inputs, at one batch and at others.

A function that takes the batch is called at each batch that is recorded: what it returns there says
which sizes follow the batch. Two calls at one batch say whether it returns the same each time.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stowage.errors import StowageError
from stowage.sources.source import Example, OtherBatchFails, built_on_meta

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

USUAL_BATCH = 2
BATCH_WORDS = ("batch", "batch_size")  # parameters of the function that take the batch
OFFERED = (*BATCH_WORDS, "seq")  # all that a function may need
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclasses.dataclass(frozen=True)
class Built:
    """What one call returned. `example` is on "meta", None where the function returned the model
    alone; `loss` is None where it returned none. `model_numbers` and `input_numbers` are {name: shape,
    or number}."""

    model: torch.nn.Module
    example: Example | None
    loss: Callable[[Any, Any], Any] | None
    model_numbers: dict[str, Any]
    input_numbers: dict[str, Any]


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """{name: parameter}, without *args and **kwargs; empty for a function of C, which does not say."""
    try:
        taken = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    return {name: one for name, one in taken.items() if one.kind not in VARIADIC}


def check_parameters(label: str, function: Callable[..., Any], seq: int | None) -> None:
    """Raises StowageError where the function needs other arguments than OFFERED, or where `seq` is given
    and it takes none."""
    taken = parameters_of(function)
    needed = [name for name, one in taken.items() if one.default is one.empty]
    if more := [name for name in needed if name not in OFFERED]:
        raise StowageError(f"'{label}' needs {' and '.join(more)}, which nothing gives it",
                           "a function of batch and seq, or of none, that returns the model")
    if "seq" in needed and not seq:
        raise StowageError(f"'{label}' needs seq", "--seq says how many tokens a sequence has")
    if seq and "seq" not in taken:
        raise StowageError(f"--seq: '{label}' takes no seq", "leave it out, or let the function take it")


def own_loss(loss: Callable[..., Any]) -> Callable[..., Any]:
    """The user's loss, called with the target if it takes one."""
    try:
        takes = len(inspect.signature(loss).parameters)
    except (TypeError, ValueError):
        takes = 2
    return loss if takes != 1 else lambda output, _target: loss(output)


def uses_a_model(loss: Callable[..., Any]) -> bool:
    """Whether the loss reads tensors of a model, such as the norm of its parameters."""
    from stowage.training.found import found_in

    return bool(found_in(loss)[0])


def common(first: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What both have alike."""
    return {name: value for name, value in first.items() if other.get(name) == value}


class FunctionCalls:
    """The function's calls. `batch` is the batch that the model is built for: the one that is asked
    for, the parameter's default, or USUAL_BATCH."""

    def __init__(self, label: str, function: Callable[..., Any], batch: int | None,
                 seq: int | None) -> None:
        self.label, self.function, self.seq = label, function, seq
        taken = parameters_of(function)
        self.parameters = taken
        self.takes_batch = any(word in taken for word in BATCH_WORDS)
        usual = next((taken[word].default for word in BATCH_WORDS if word in taken), None)
        if not isinstance(usual, int) or isinstance(usual, bool) or usual < 1:
            usual = USUAL_BATCH
        self.batch = batch or usual
        self.first = self.call(self.batch)
        self.second_fails = ""
        again = self.first
        if self.takes_batch or again.example is not None:
            again = self.second_call()
        self.check_repeatable(again)
        # A number that is another in each call (an id, a time step) does not follow the batch.
        self.model_numbers = common(self.first.model_numbers, again.model_numbers)
        self.input_numbers = common(self.first.input_numbers, again.input_numbers)

    def call(self, batch: int) -> Built:
        """What the function returns at that batch. Raises StowageError for what is no model."""
        values = dict(zip(OFFERED, (batch, batch, self.seq)))
        positional, keywords = [], {}
        for name, parameter in self.parameters.items():
            given = name in values and values[name]
            if parameter.kind is parameter.POSITIONAL_ONLY:
                if not given and parameter.default is parameter.empty:
                    break
                positional.append(values[name] if given else parameter.default)
            elif given:
                keywords[name] = values[name]
        try:
            return self.parts(built_on_meta(lambda: self.function(*positional, **keywords)))
        except RuntimeError as error:
            if "NVIDIA driver" not in str(error):
                raise
            from stowage.trace.places import place_of_traceback

            raise StowageError(
                f"{place_of_traceback(error.__traceback__)}: '{self.label}' asks for a GPU, and there is "
                "none", "leave the device out of it: the model and its inputs are recorded on a device "
                "that is pretended") from error

    def parts(self, result: Any) -> Built:
        import torch

        model, *rest = result if isinstance(result, (tuple, list)) else (result,)
        if not isinstance(model, torch.nn.Module):
            raise StowageError(f"'{self.label}' returned a {type(model).__name__}, not a model",
                               "it returns an nn.Module, or a tuple that begins with one")
        loss = own_loss(rest[-1]) if len(rest) > 1 and callable(rest[-1]) else None
        example = None
        if rest:
            target = rest[1] if len(rest) > 1 and not callable(rest[1]) else None
            example = as_example(rest[0], target, loss)
        return Built(model, example, loss, numbers_of_model(model),
                     numbers_of_inputs(example) if example is not None else {})

    def second_call(self) -> Built:
        """What the function returns when it is called again; the first result where it raises then."""
        try:
            return self.call(self.batch)
        except Exception as error:
            message = str(error).strip().split("\n")[0]
            self.second_fails = f"{type(error).__name__}: {message}"
            return self.first

    def check_repeatable(self, again: Built) -> None:
        for name, value in self.first.input_numbers.items():
            if isinstance(value, tuple) and again.input_numbers.get(name) != value:
                raise StowageError(
                    f"'{self.label}' returns other inputs at each call: {name} is "
                    f"{shown(value)}, then {shown(again.input_numbers.get(name))}",
                    "let it return inputs of the same sizes each time, the largest that a step gets")

    def at(self, batch: int) -> Built:
        """What the function returns at that batch. Raises OtherBatchFails where it cannot be
        called again, where the model is another there, or where the inputs are those of `self.batch`."""
        if batch == self.batch:
            return self.first
        if self.second_fails:
            raise OtherBatchFails(f"a second call of '{self.label}' raises {self.second_fails}")
        made = self.call(batch)
        for name in dict.fromkeys([*self.model_numbers, *made.model_numbers]):
            here, there = self.model_numbers.get(name), made.model_numbers.get(name)
            if here != there and (here is not None or name not in self.first.model_numbers):
                raise OtherBatchFails(
                    f"the model is built for a batch: its {name} is {shown(here)} at batch "
                    f"{self.batch} and {shown(there)} at batch {batch}")
        same_names = made.input_numbers.keys() == self.first.input_numbers.keys()
        if self.first.example is not None and same_names and (
                common(self.input_numbers, made.input_numbers) == self.input_numbers):
            raise OtherBatchFails(f"'{self.label}' returns inputs of the same sizes at batch "
                                  f"{self.batch} and at batch {batch}")
        return made

    def example(self, batch: int) -> Example:
        made = self.at(batch).example
        assert made is not None and self.first.example is not None
        if made.loss is not None and uses_a_model(made.loss):
            made.loss = self.first.example.loss  # with the model that is recorded
        return made


def as_example(inputs: Any, target: Any, loss: Callable[..., Any] | None = None) -> Example:
    """The Example on "meta". A tensor that the inputs hold twice is one tensor there too."""
    import torch

    from stowage.training.weightless import on_device

    def on_meta(value: torch.Tensor) -> torch.Tensor:
        if value.layout is not torch.strided:
            raise StowageError(f"an input is a tensor of layout {value.layout}",
                               "sparse tensors are not recorded")
        return torch.empty_like(value, device="meta", requires_grad=False)

    if isinstance(inputs, Mapping):  # transformers' BatchEncoding is no dict
        inputs = dict(inputs)
    inputs, target = on_device((inputs, target), on_meta)
    if isinstance(inputs, dict):
        return Example((), inputs, target, loss)
    return Example(tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,), {}, target, loss)


def shown(value: Any) -> str:
    return "not there" if value is None else str(list(value) if isinstance(value, tuple) else value)


def numbers_of_inputs(example: Example) -> dict[str, Any]:
    """{"input 1": shape of the tensor, or the number itself}."""
    import torch
    from torch.utils._pytree import tree_flatten_with_path

    found: dict[str, Any] = {}
    for word, tree in (("input", example.arguments), ("input", example.keywords),
                       ("target", example.target)):
        for path, leaf in tree_flatten_with_path(tree)[0]:
            keys = [str(getattr(key, "key", getattr(key, "idx", ""))) for key in path]
            name = " ".join([word, ".".join(keys)]).strip()
            if isinstance(leaf, torch.Tensor):
                found[name] = tuple(leaf.shape)
            elif isinstance(leaf, (int, str)):
                found[name] = leaf
    return found


def numbers_of_model(model: torch.nn.Module) -> dict[str, Any]:
    """{name: shape of a parameter or buffer, or a whole number that a module has as an attribute}."""
    found: dict[str, Any] = {name: tuple(tensor.shape) for kind in ("named_parameters", "named_buffers")
                             for name, tensor in getattr(model, kind)()}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            numbers = value if isinstance(value, (tuple, list)) else (value,)
            if not name.startswith("_") and numbers and all(type(number) is int for number in numbers):
                found[".".join(part for part in (path, name) if part)] = (
                    value if isinstance(value, int) else tuple(value))
    return found
