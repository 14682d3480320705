"""A model with example inputs and a loss: what each reader of a source returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from stowage.errors import StowageError

if TYPE_CHECKING:
    from types import ModuleType

    import torch


@dataclasses.dataclass(frozen=True)
class SourceOptions:
    """What the command line says about a source. None: the source decides."""

    seq: int | None = None  # tokens
    size: int | None = None  # pixels of an image's side
    inputs: tuple[str, ...] = ()  # shapes without the batch: "3x224x224", "128:int64"
    head: str | None = None  # transformers: "CausalLM", "SequenceClassification", ...
    # The axis of the inputs that is the batch: one for all tensors, or one for each; None: none is.
    batch_axes: tuple[int | None, ...] = ()


@dataclasses.dataclass
class Example:
    """One batch, on the device "meta": the model is called with `arguments` and `keywords`;
    `target` is for the loss, None where the model computes it. `loss` is this batch's own, in place
    of the source's."""

    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = dataclasses.field(default_factory=dict)
    target: Any = None
    loss: Callable[[Any, Any], Any] | None = None


class OtherBatchFails(Exception):
    """The step can be recorded at its batch and not at another; the message says why. It follows "the
    step is recorded for batch 4 alone: "."""


def failure_at(batch: int, error: Exception) -> OtherBatchFails:
    """The OtherBatchFails for an exception that was raised at another batch."""
    if isinstance(error, OtherBatchFails):
        return error
    message = str(error).strip().split("\n")[0]
    return OtherBatchFails(f"at batch {batch} it raises {type(error).__name__}: {message}")


@dataclasses.dataclass(frozen=True)
class FixedBatch:
    """Why a step is recorded for its own batch alone: a warning's text and hint. Without text there is
    no warning: its user said so."""

    reason: str = ""
    hint: str = ""


@dataclasses.dataclass
class Source:
    """A model, and how to feed it.

    model    an nn.Module on the device "meta", in float32
    example  batch -> Example. Raises OtherBatchFails where there is none at that batch
    loss     (output, target) -> scalar tensor; None: the model computes it
    fixed    why there are inputs for one batch alone; None: there are at any
    """

    name: str
    description: str  # whose implementation, with its version: "torchvision 0.29.2, resnet50"
    model: Any
    example: Callable[[int], Example]
    loss: Callable[[Any, Any], Any] | None
    seq: int | None = None
    batch: int | None = None  # where the source itself says one
    fixed: FixedBatch | None = None


def import_library(name: str) -> ModuleType:
    """The module. Raises StowageError, with the way to install it, where it is not installed."""
    import importlib

    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        raise StowageError(f"the package '{name}' is not installed",
                           f"pip install {name}") from None


def closest(word: str, words: Iterable[str]) -> str:
    """A hint that names the words nearest to `word`; empty where none is near."""
    import difflib

    near = difflib.get_close_matches(word, list(words), n=3, cutoff=0.6)
    return f"did you mean {', '.join(near)}?" if near else ""


def built_on_meta(build: Callable[[], Any]) -> Any:
    """What `build()` returns, a model or a tuple with models in it; their parameters are on the device
    "meta", where they have no memory. Default devices do not reach tensors that are made on a device
    of their own. What looks at values while it is built is built on the CPU, and its models are moved
    afterwards."""
    import torch

    try:
        with torch.device("meta"):
            return build()
    except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        if "meta" not in str(error).lower():
            raise
    return with_models_on_meta(build())


def with_models_on_meta(built: Any) -> Any:
    import torch

    if isinstance(built, torch.nn.Module):
        return built.to("meta")
    if type(built) in (tuple, list):
        return tuple(part.to("meta") if isinstance(part, torch.nn.Module) else part for part in built)
    return built


def first_tensor(output: Any) -> torch.Tensor:
    """The main tensor of a model's output: the output itself, its logits, or its first entry. Raises
    StowageError where it has none."""
    import torch

    if isinstance(output, torch.Tensor):
        return output
    for name in ("logits", "out", "last_hidden_state"):
        if isinstance(output, dict) and name in output:
            return output[name]
        if hasattr(output, name):
            return getattr(output, name)
    values = output.values() if isinstance(output, dict) else output
    if isinstance(values, Iterable) and not isinstance(values, str):
        for value in values:
            if value is not None:
                return first_tensor(value)
    raise StowageError(f"the model's output, a {type(output).__name__}, holds no tensor")


def class_loss(output: Any, _target: torch.Tensor | None = None) -> torch.Tensor:
    """Cross entropy of scores of shape [batch, classes] or [batch, classes, ...], as a scalar. The target
    has class numbers, int64, of shape [batch] or [batch, ...]; None: zeros of that shape."""
    import torch
    import torch.nn.functional as functional

    scores = first_tensor(output)
    target = _target
    if target is None:
        shape = (scores.shape[0], *scores.shape[2:])
        target = torch.zeros(shape, dtype=torch.int64, device=scores.device)
    return functional.cross_entropy(scores, target)
