"""Hooks on a model's parameters, on the fake parameters that stand for them in a recording.

Tensor.register_hook and register_post_accumulate_grad_hook keep their hooks in dictionaries. The
fake parameter gets dictionaries of its own, whose hooks run the model's for as long as they are
registered: one that removes itself in its first call runs once. Hooks on AccumulateGrad nodes cannot
be read back from PyTorch and are not among these (docs/record.md).
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import torch

    HookTable = Mapping[int, Callable[..., Any]]


def copy_hooks(parameter: torch.Tensor, fake: torch.Tensor,
               on_result: Callable[[], None] = lambda: None) -> None:
    """Registers the parameter's hooks on the fake one, in the same order. PyTorch ends backward where
    a hook of register_post_accumulate_grad_hook returns a value; here `on_result` is called, and the
    value is dropped."""
    gradient_hooks = parameter._backward_hooks
    if gradient_hooks:
        fake._backward_hooks = standing_in(gradient_hooks, lambda result: result)
    accumulated_hooks = parameter._post_accumulate_grad_hooks
    if accumulated_hooks:
        fake._post_accumulate_grad_hooks = standing_in(
            accumulated_hooks, lambda result: on_result() if result is not None else None)


def standing_in(hooks: HookTable,
                taken: Callable[[Any], Any]) -> collections.OrderedDict[int, Callable[..., Any]]:
    """A table of functions that call the hooks of `hooks`, each while it is there, and return what
    `taken` makes of the result."""
    def stand_in(number: int) -> Callable[..., Any]:
        def run(argument: torch.Tensor) -> Any:
            hook = hooks.get(number)
            return taken(hook(argument)) if hook is not None else None

        return run

    return collections.OrderedDict((number, stand_in(number)) for number in hooks)


def result_warnings(names: Iterable[str]) -> list[dict[str, str]]:
    """A warning for each parameter of which a hook returned a value where PyTorch takes none."""
    return [{"message": f"a hook of register_post_accumulate_grad_hook on '{name}' returns a value, "
                        "for which PyTorch ends backward with an error; what the hook runs is "
                        "recorded",
             "hint": "let the hook return None"} for name in names]
