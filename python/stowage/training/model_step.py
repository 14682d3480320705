"""The usual step of a model: forward, loss, backward, update, zero_grad.

As in a script, `output` and `loss` are variables that keep what they hold until they are assigned
again.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

import torch

from stowage.errors import StowageError
from stowage.sources.source import Example, first_tensor
from stowage.training.weightless import fake_like, on_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# In which the model computes: all of it, or under autocast. None: as it is.
MODEL_DTYPES: dict[str | None, torch.dtype | None] = {
    "fp32": None, "fp64": torch.float64, "fp16": torch.float16, "bf16": torch.bfloat16}
AUTOCAST: dict[str | None, torch.dtype] = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}


def check_rates(model: torch.nn.Module) -> None:
    """Raises StowageError for a layer that drops out at a rate which is no number."""
    for path, module in model.named_modules():
        if isinstance(module, torch.nn.modules.dropout._DropoutNd) and not 0 <= module.p <= 1:
            kind = type(module).__name__
            raise StowageError(f"{path or 'the model'}: {kind} has p={module.p}",
                               "a probability lies between 0 and 1")


@contextlib.contextmanager
def in_mode(model: torch.nn.Module, training: bool) -> Iterator[None]:
    """While active, the model trains or evaluates. One that trains in parts (frozen batch norm) is
    left as it is."""
    before = [(module, module.training) for module in model.modules()]
    if model.training != training or not training:
        model.train(training)
    try:
        yield
    finally:
        for module, was_training in before:
            module.training = was_training


def output_loss(output: Any) -> torch.Tensor:
    """The loss that the model computed itself."""
    loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if not isinstance(loss, torch.Tensor):
        raise StowageError("no loss is given, and the model's output has none",
                           "loss=function(output, target), for example "
                           "torch.nn.functional.cross_entropy, with target=")
    return loss


def needs_closure(optimizer: torch.optim.Optimizer) -> bool:
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty


class ModelStep:
    """Runs steps of a model with fake tensors. `example` makes a batch (sources/source.py); `loss`
    takes (output, target). `optimizer` is made of the parameters that train, or None: inference."""

    batch: tuple[Any, Any, Any]  # arguments, keywords, target: what `load` made

    def __init__(self, model: torch.nn.Module, example: Callable[[int], Example],
                 loss: Callable[[Any, Any], Any] | None, optimizer: torch.optim.Optimizer | None,
                 precision: str | None = "fp32", set_to_none: bool = True,
                 micro_batches: int = 1) -> None:
        self.model, self.example = model, example
        self.loss_function = self.usual_loss = loss
        self.optimizer = optimizer
        if optimizer is not None and needs_closure(optimizer):
            raise StowageError(
                f"{type(optimizer).__name__} runs the model itself, in a closure",
                "record a function that calls optimizer.step(closure)")
        self.dtype = MODEL_DTYPES.get(precision)
        self.autocast = AUTOCAST.get(precision)
        self.set_to_none = set_to_none
        self.micro_batches = micro_batches
        self.output: Any = None
        self.loss: Any = None

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        return [self.optimizer] if self.optimizer is not None else []

    def load(self, batch: int) -> tuple[Any, Any, Any]:
        """Make the batch's inputs; returns the tensors."""
        made = self.example(batch)
        self.loss_function = made.loss or self.usual_loss
        self.batch = on_device((made.arguments, made.keywords, made.target),
                               lambda tensor: fake_like(tensor, self.dtype))
        return self.batch

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        if self.autocast is None:
            return contextlib.nullcontext()
        autocast: contextlib.AbstractContextManager[Any] = torch.autocast("cuda", self.autocast)
        return autocast

    def run(self, on_micro_batch: Callable[[int], None] = lambda index: None) -> None:
        """One step."""
        if self.optimizer is None:
            self.infer()
            return
        for index in range(self.micro_batches):
            on_micro_batch(index)
            self.micro_batch()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=self.set_to_none)

    def infer(self) -> None:
        arguments, keywords, _ = self.batch
        with torch.no_grad(), self.precision():
            self.output = self.model(*arguments, **keywords)

    def micro_batch(self) -> None:
        arguments, keywords, target = self.batch
        with self.precision():
            self.output = self.model(*arguments, **keywords)
            self.loss = self.loss_of(self.output, target)
        if self.loss.dim():
            raise StowageError(f"the loss is a tensor of shape {list(self.loss.shape)}, not a number",
                               "reduce it: loss.mean()")
        loss = self.loss if self.micro_batches == 1 else self.loss / self.micro_batches
        loss.backward()

    def loss_of(self, output: Any, target: Any) -> torch.Tensor:
        if self.loss_function is None:
            return output_loss(output)
        try:
            loss: torch.Tensor = self.loss_function(output, target)
            return loss
        except RuntimeError as error:
            if type(error).__name__ == "FakeTensorDeviceMismatchError" and "meta" in str(error):
                raise StowageError(
                    "the loss reads a tensor that is neither the model's output nor its target",
                    "return it as the target: model, inputs, target, loss; or let the loss move it: "
                    "weight.to(output.device)") from error
            raise

    def output_tensor(self) -> torch.Tensor:
        return first_tensor(self.output)
