"""path/file.py:FUNCTION: a function that returns a model.

It may take `batch` and `seq` and return

    model                              with --input for the shapes
    model, inputs                      a tensor, a tuple, or a dict of keywords, for batch `batch`
    model, inputs, loss                loss(output) or loss(output, target)
    model, inputs, target, loss

It is called with the device "meta" as default, so that its weights have no memory; where it looks
at values while it builds, it is called again on the CPU.
"""

from __future__ import annotations

import importlib.util
import inspect
import pathlib
import sys
from typing import TYPE_CHECKING, Any

from stowage.errors import StowageError
from stowage.sources.source import Example, Source, SourceOptions, built_on_meta, class_loss, closest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import torch

EXAMPLE_BATCH = 2
OFFERED = ("batch", "batch_size", "seq")  # what a function may take


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


def check_parameters(label: str, function: Callable[..., Any], seq: int | None) -> None:
    """Raises StowageError where the function needs other arguments than OFFERED, or where `seq` is given
    and it takes none."""
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return  # a function of C: what it takes shows when it is called
    single = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p.name for p in taken if p.default is p.empty and p.kind not in single]
    if more := [name for name in needed if name not in OFFERED]:
        raise StowageError(f"'{label}' needs {' and '.join(more)}, which nothing gives it",
                           "a function of batch and seq, or of none, that returns the model")
    if "seq" in needed and not seq:
        raise StowageError(f"'{label}' needs seq", "--seq says how many tokens a sequence has")
    if seq and "seq" not in [p.name for p in taken]:
        raise StowageError(f"--seq: '{label}' takes no seq", "leave it out, or let the function take it")


def call(function: Callable[..., Any], batch: int, seq: int | None) -> Any:
    """The function's result; it gets of `batch` and `seq` what it takes."""
    offered = dict(zip(OFFERED, (batch, batch, seq)))
    taken = inspect.signature(function).parameters
    keywords = {name: value for name, value in offered.items() if name in taken and value}
    return function(**keywords)


def as_example(inputs: Any, target: Any) -> Example:
    if isinstance(inputs, dict):
        return Example((), inputs, target)
    return Example(tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,), {}, target)


def own_loss(loss: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The user's loss, called with the target if it takes one."""
    try:
        takes = len(inspect.signature(loss).parameters)
    except (TypeError, ValueError):
        takes = 2
    return loss if takes != 1 else lambda output, _target: loss(output)


def resolve(path: str, name: str, options: SourceOptions) -> Source:
    import torch

    module = load_file(path)
    function = getattr(module, name, None)
    if not callable(function):
        functions = [key for key, value in vars(module).items() if callable(value)]
        raise StowageError(f"'{path}' has no function '{name}'", closest(name, functions))

    check_parameters(f"{path}:{name}", function, options.seq)

    def build(batch: int) -> Any:
        def made() -> Any:
            return call(function, batch, options.seq)

        try:
            return built_on_meta(made)
        except (RuntimeError, NotImplementedError) as error:
            if "meta" not in str(error):
                raise
            return made()

    result = build(EXAMPLE_BATCH)
    model, *rest = result if isinstance(result, (tuple, list)) else (result,)
    if not isinstance(model, torch.nn.Module):
        raise StowageError(f"'{path}:{name}' returned a {type(model).__name__}, not a model",
                           "it returns an nn.Module, or a tuple that begins with one")
    if rest and options.inputs:
        raise StowageError(f"--input: '{path}:{name}' returns the model's inputs itself",
                           "leave it out")
    loss = own_loss(rest[-1]) if len(rest) > 1 and callable(rest[-1]) else class_loss
    if not rest and not options.inputs:
        raise StowageError(f"'{path}:{name}' says nothing about the model's inputs",
                           "return (model, inputs), or give their shapes: --input 3x224x224")

    def example(batch: int) -> Example:
        if not rest:
            tensors = [torch.empty((batch, *shape), dtype=dtype, device="meta")
                       for shape, dtype in map(input_of, options.inputs)]
            return Example(tuple(tensors))
        inputs = rest[0]
        target = rest[1] if len(rest) > 1 and not callable(rest[1]) else None
        return as_example(*rebatched((inputs, target), batch))

    return Source(name if name != "build_model" else pathlib.Path(path).stem,
                  f"{pathlib.Path(path).name}:{name}", model, example, loss, options.seq,
                  batch=batch_of(rest[0]) if rest else None)


def batch_of(inputs: Any) -> int | None:
    """The first axis of the first tensor."""
    import torch
    from torch.utils._pytree import tree_iter

    for value in tree_iter(inputs):
        if isinstance(value, torch.Tensor) and value.dim():
            return int(value.shape[0])
    return None


def rebatched(values: Any, batch: int) -> Any:
    """The same tree, each tensor on "meta" and with `batch` rows."""
    import torch
    from torch.utils._pytree import tree_map

    def one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        shape = (batch, *value.shape[1:]) if value.dim() else ()
        return torch.empty(shape, dtype=value.dtype, device="meta")

    return tree_map(one, values)
