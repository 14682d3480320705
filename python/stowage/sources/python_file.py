"""path/file.py:FUNCTION: a function that returns a model.

It may take `batch` and `seq` and return

    model                              with --input for the shapes
    model, inputs                      a tensor, a tuple, or a dict of keywords, for batch `batch`
    model, inputs, loss                loss(output) or loss(output, target)
    model, inputs, target, loss

It is called with the device "meta" as default, so that its weights have no memory; where it looks
at values while it builds, it is called again on the CPU. A function that takes the batch is called at
each batch that is recorded (function_calls.py). Of one that takes none nothing says which axes of its
inputs are the batch: its user says them (batch_axes), or its step is recorded for these inputs alone.

The file is loaded, and its function called, with the words behind "--" as the script's own: sys.argv.
"""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from typing import TYPE_CHECKING, Any

from stowage.errors import StowageError
from stowage.sources.function_calls import FunctionCalls, check_parameters
from stowage.sources.script_arguments import script_arguments
from stowage.sources.source import Example, FixedBatch, Source, SourceOptions, class_loss, closest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    import torch


def load_file(path: str) -> ModuleType:
    """The file as a module; its folder is searched for what it imports, as Python does."""
    file = pathlib.Path(path)
    if not file.is_file():
        raise StowageError(f"there is no file '{path}'")
    specification = importlib.util.spec_from_file_location(file.stem, file)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[file.stem] = module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        specification.loader.exec_module(module)
    except SyntaxError as error:
        raise StowageError(f"{path}:{error.lineno}:{error.offset}: {error.msg}") from None
    return module


def input_of(text: str) -> tuple[tuple[int, ...], torch.dtype]:
    """(shape without the batch, dtype) of "3x224x224" or "128:int64"; "" is one number a row."""
    import torch

    sizes, _, word = text.partition(":")
    try:
        shape = tuple(int(size) for size in sizes.split("x") if size)
        dtype = getattr(torch, word or "float32")
        if not isinstance(dtype, torch.dtype) or any(size < 1 for size in shape):
            raise ValueError
    except (ValueError, AttributeError):
        raise StowageError(f"--input '{text}' is no shape",
                           "sizes without the batch, and a type: 3x224x224 or 128:int64") from None
    return shape, dtype


def function_of(path: str, name: str) -> Callable[..., Any]:
    """The file's function. Raises StowageError where it has none of that name."""
    import torch

    module = load_file(path)
    function: Callable[..., Any] | None = getattr(module, name, None)
    if function is None or not callable(function):
        functions = [key for key, value in vars(module).items() if callable(value)]
        raise StowageError(f"'{path}' has no function '{name}'", closest(name, functions))
    if isinstance(function, torch.nn.Module):
        raise StowageError(f"'{path}:{name}' is a model, not a function that returns one",
                           f"def build_model(): return {name}")
    return function


def resolve(path: str, name: str, options: SourceOptions, batch: int | None = None,
            arguments: Sequence[str] = ()) -> Source:
    """The Source of a function. `batch` is the one that is asked for, None: the function's own;
    `arguments` are the file's own."""
    label = f"{path}:{name}"
    with script_arguments(path, arguments):
        function = function_of(path, name)
        check_parameters(label, function, options.seq)
        calls = FunctionCalls(label, function, batch, options.seq)
    returned = calls.first.example
    check_inputs(label, returned, options)

    def at_batch(batch: int) -> Example:
        with script_arguments(path, arguments):
            if returned is not None:
                return calls.example(batch)
            if calls.takes_batch:
                calls.at(batch)  # whether the model is the same
        return Example(tuple(empty_input(batch, text) for text in options.inputs))

    example: Callable[[int], Example] = at_batch
    own_batch, fixed = calls.batch if calls.takes_batch else None, None
    if returned is not None and not calls.takes_batch:
        example, own_batch, fixed = without_batch(label, returned, options, batch)
    elif options.batch_axes:
        raise StowageError(f"--batch-axes: '{label}' " + (
            "takes the batch itself" if calls.takes_batch else "returns no inputs"), "leave it out")
    return Source(name if name != "build_model" else pathlib.Path(path).stem,
                  f"{pathlib.Path(path).name}:{name}", calls.first.model, example,
                  calls.first.loss or class_loss, options.seq, own_batch, fixed)


def check_inputs(label: str, returned: Example | None, options: SourceOptions) -> None:
    if returned is not None and options.inputs:
        raise StowageError(f"--input: '{label}' returns the model's inputs itself", "leave it out")
    if returned is None and not options.inputs:
        raise StowageError(f"'{label}' says nothing about the model's inputs",
                           "return (model, inputs), or give their shapes: --input 3x224x224")


def empty_input(batch: int, text: str) -> torch.Tensor:
    """An input on "meta" at the batch; `text` is as for `input_of`."""
    import torch

    shape, dtype = input_of(text)
    return torch.empty((batch, *shape), dtype=dtype, device="meta")


def without_batch(label: str, returned: Example, options: SourceOptions,
                  batch: int | None) -> tuple[Callable[[int], Example], int | None, FixedBatch | None]:
    """(example, its batch, why it is fixed) of a function that takes no batch. Raises StowageError
    where another batch than its own is asked for and nothing says how to make it."""
    from stowage.training.batch_axes import BatchAxes

    name = label.rpartition(":")[2]
    reason = f"'{label}' takes no batch, and nothing says which axis of its inputs is the batch"
    hint = (f"let it take the batch: def {name}(batch), or say which axis is: --batch-axes 0, "
            "or --batch-axes 0,1,none for each tensor")
    if not options.batch_axes:
        if batch is not None:
            raise StowageError(f"--batch {batch}: {reason}", hint)
        return lambda _batch: returned, 1, FixedBatch(reason, hint)
    only = options.batch_axes[0] if len(options.batch_axes) == 1 else options.batch_axes
    axes = BatchAxes(returned.arguments, returned.keywords, returned.target, only, "--batch-axes")
    axes.check_batch(batch)

    def example(batch: int) -> Example:
        made = axes.example(batch)
        made.loss = returned.loss
        return made

    return example, axes.batch or 1, FixedBatch() if axes.batch is None else None
