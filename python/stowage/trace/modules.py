"""Which module is running, by its path in the model, and what leaf modules return."""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules import module as module_hooks
from torch.utils._pytree import tree_iter

from stowage.trace.record import LayerRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def module_names(roots: dict[str, torch.nn.Module]) -> dict[int, str]:
    """{id of a module: its path}. Several models' paths begin with the name of each."""
    names: dict[int, str] = {}
    for prefix, root in roots.items():
        for path, module in root.named_modules():
            whole = ".".join(part for part in (prefix, path) if part)
            names.setdefault(id(module), whole or type(root).__name__)
    return names


class ModuleStack:
    """A stack of the modules whose forward runs; `roots` are {prefix: model}."""

    def __init__(self, roots: dict[str, torch.nn.Module]) -> None:
        self.names = module_names(roots)
        self.stack: list[tuple[str, torch.nn.Module]] = []

    @property
    def path(self) -> str:
        """The innermost module that belongs to a model; "": none runs."""
        return self.stack[-1][0] if self.stack else ""

    def enter(self, module: torch.nn.Module, _inputs: Any) -> None:
        name = self.names.get(id(module))
        # A module that no model knows (made on the fly) counts as the one around it.
        self.stack.append((name if name is not None else self.path, module))

    def leave(self, module: torch.nn.Module, _inputs: Any, _output: Any) -> None:
        while self.stack and self.stack.pop()[1] is not module:
            pass

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        before = module_hooks.register_module_forward_pre_hook(self.enter)
        after = module_hooks.register_module_forward_hook(self.leave, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()


def runs_in_sequence(module: torch.nn.Module) -> bool:
    """Whether its forward is nn.Sequential's, which calls its children one after the other, whatever
    stands around it (module_calls.py of plans replaces it)."""
    forward = inspect.unwrap(type(module).forward)
    return (isinstance(module, torch.nn.Sequential) and "forward" not in vars(module) and
            forward is inspect.unwrap(torch.nn.Sequential.forward))


class RunningModules(ModuleStack):
    """Also notes what leaf modules return. `on_output(output)` is called when the outermost returns,
    `on_call(path, module, inputs)` when one of a model's modules begins."""

    def __init__(self, roots: dict[str, torch.nn.Module],
                 on_output: Callable[[Any], None] = lambda output: None,
                 on_call: Callable[[str, torch.nn.Module, Any], None] = lambda *call: None) -> None:
        super().__init__(roots)
        self.layers: dict[str, LayerRecord] = {}
        self.on_output, self.on_call = on_output, on_call

    def enter(self, module: torch.nn.Module, inputs: Any) -> None:
        super().enter(module, inputs)
        if id(module) in self.names:
            self.on_call(self.path, module, inputs)

    def leave(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        super().leave(module, inputs, output)
        tensors = [t for t in tree_iter(output) if isinstance(t, torch.Tensor)]
        name = self.names.get(id(module))
        if tensors and name is not None and next(module.children(), None) is None:
            self.layers.setdefault(name, LayerRecord(
                type(module).__name__, tuple(tensors[0].shape),
                sum(p.numel() for p in module.parameters())))
        if not self.stack and tensors:
            self.on_output(output)
