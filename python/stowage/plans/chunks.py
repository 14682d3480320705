"""An inference in parts: a call of the model with a whole batch runs in parts of the plan's size, one
after the other, and their outputs are put together.

    model(x)  ->  y[0:2] = forward(x[0:2]), y[2:4] = forward(x[2:4]), ...

The plan says the shapes of the model's inputs and of its output, and so which of them have the batch as
their first axis. A call that is not as planned runs whole, as without a plan, and that is said once:
other tensors than planned, an output that has no axis for the batch, an object that may change from
part to part. So does a call that trains, or one of at most a part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from stowage.plans.dimensions import fitting_batch, shown_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from stowage.plans.plan_file import Chunks

CONSTANTS = (type(None), bool, int, float, str, torch.dtype, torch.device)


class CannotCut(Exception):
    """Why a call runs whole."""


class ChunkedCalls:
    """Calls of one model. `samples`: of a part; `fall_back(calls, reason, what)` is told where a
    call runs whole."""

    def __init__(self, chunks: Chunks, samples: int, fall_back: Callable[[int, str, str], None]) -> None:
        self.chunks, self.samples, self.fall_back = chunks, samples, fall_back
        self.runs = False

    def around(self, forward: Callable[..., Any], module: torch.nn.Module) -> Callable[..., Any]:
        def run(_module: torch.nn.Module, *arguments: Any, **keywords: Any) -> Any:
            if self.runs or module.training or torch.is_grad_enabled():
                return forward(module, *arguments, **keywords)
            self.runs = True
            try:
                return self.run(forward, module, arguments, keywords)
            except CannotCut as reason:
                self.fall_back(1, str(reason), "runs a batch whole that {} has in parts")
                return forward(module, *arguments, **keywords)
            finally:
                self.runs = False

        return run

    def run(self, forward: Callable[..., Any], module: torch.nn.Module, arguments: tuple[Any, ...],
            keywords: dict[str, Any]) -> Any:
        leaves, form = pytree.tree_flatten((arguments, keywords))
        cut, batch = self.inputs(leaves)
        if batch <= self.samples:
            return forward(module, *arguments, **keywords)
        gathered: Gathered | None = None
        for begin in range(0, batch, self.samples):
            size = min(self.samples, batch - begin)
            given, named = pytree.tree_unflatten(
                [leaf.narrow(0, begin, size) if index in cut else leaf
                 for index, leaf in enumerate(leaves)], form)
            output = forward(module, *given, **named)
            if gathered is None:
                gathered = Gathered(self.chunks, output, size, batch)
            gathered.add(output, begin, size)
            del output
        assert gathered is not None
        return gathered.output()

    def inputs(self, leaves: list[Any]) -> tuple[set[int], int]:
        """(which leaves are cut, the batch)."""
        places = [index for index, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        for leaf in leaves:
            if not isinstance(leaf, (torch.Tensor, *CONSTANTS)):
                raise CannotCut(f"the model is called with a {type(leaf).__name__}, which parts may "
                                "change")
        planned = self.chunks.inputs
        if len(places) != len(planned):
            raise CannotCut(f"the model is called with {len(places)} tensors, and the plan has "
                            f"{len(planned)}")
        batch: int | None = None
        for index, shape in zip(places, planned):
            found = fitting_batch(shape, tuple(leaves[index].shape), batch)
            if found is None:
                raise CannotCut(f"the model is called with a tensor of {list(leaves[index].shape)}, and "
                                f"the plan has {shown_shape(shape)}")
            batch = found or batch
        cut = {index for index, shape in zip(places, planned) if any(size.slope for size in shape)}
        return cut, batch or 0


class Gathered:
    """The whole output, made after the first part; `size` is that part's."""

    def __init__(self, chunks: Chunks, first: Any, size: int, batch: int) -> None:
        leaves, self.form = pytree.tree_flatten(first)
        self.constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.wholes: list[torch.Tensor | None] = []
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                check_output(chunks, leaf, size, batch)
                self.wholes.append(leaf.new_empty((batch, *leaf.shape[1:])))
            elif isinstance(leaf, CONSTANTS):
                self.wholes.append(None)
            else:
                raise CannotCut(f"the model returns a {type(leaf).__name__}, which has no axis for the "
                                "batch")

    def add(self, output: Any, begin: int, size: int) -> None:
        leaves, form = pytree.tree_flatten(output)
        if form != self.form:
            raise CannotCut("the model returns something else for another part")
        for leaf, whole, constant in zip(leaves, self.wholes, self.constants):
            if whole is None:
                if leaf != constant:
                    raise CannotCut(f"the model returns {constant!r} for one part, and {leaf!r} for "
                                    "another")
            elif leaf.shape != (size, *whole.shape[1:]) or leaf.dtype != whole.dtype:
                raise CannotCut(f"the model returns a tensor of {list(leaf.shape)} for a part of {size}")
            else:
                whole.narrow(0, begin, size).copy_(leaf)

    def output(self) -> Any:
        return pytree.tree_unflatten([constant if whole is None else whole for whole, constant in
                                      zip(self.wholes, self.constants)], self.form)


def check_output(chunks: Chunks, leaf: torch.Tensor, size: int, batch: int) -> None:
    """Raises CannotCut unless the first axis is the batch: as the plan has it, or as its size alone
    tells."""
    if fitting_batch(chunks.output, tuple(leaf.shape), size) is not None:
        return
    if leaf.dim() == 0 or leaf.shape[0] != size or size in leaf.shape[1:]:
        raise CannotCut(f"the model returns a tensor of {list(leaf.shape)} for a part of {size} of "
                        f"{batch}")
