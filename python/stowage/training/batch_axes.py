"""Example inputs at another batch: which axis of each tensor is the batch."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from stowage.errors import StowageError
from stowage.sources.source import Example, FixedBatch

# The axis of all tensors that is the batch, or one for each; None: the tensor does not follow it.
# FIRST: axis 0 of all, as long as all have the same size along it.
FIRST: Literal["first"] = "first"
Axes: TypeAlias = int | Sequence[int | None] | Literal["first"] | None


class BatchAxes:
    """`axes` is an axis for all tensors, or a list with one for each, in the order of arguments,
    keywords and target; None: that tensor does not follow the batch. An axis of several times the
    batch (tokens of all samples in a row) grows with it. What is no tensor stays as it is.

    `batch` is the batch of these tensors, None where none follows it. `word` is what the axes are
    called where they are said. Raises StowageError for axes that the tensors do not have."""

    def __init__(self, arguments: tuple[Any, ...], keywords: dict[str, Any], target: Any,
                 axes: Axes = FIRST, word: str = "batch_axes") -> None:
        self.leaves, self.structure = tree_flatten((tuple(arguments), dict(keywords), target))
        self.tensors = [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]
        self.word, self.is_said = word, axes != FIRST
        if axes == FIRST:
            axes = 0
        if axes is None or not isinstance(axes, Sequence):
            axes = [axes if leaf.dim() else None for leaf in self.tensors]
        if isinstance(axes, str):
            raise self.no_axis(axes)
        if len(axes) != len(self.tensors):
            raise StowageError(f"{word} has {len(axes)} entries for {len(self.tensors)} tensors",
                               f"one for each, {self.none} where a tensor does not follow the batch")
        for index, (leaf, axis) in enumerate(zip(self.tensors, axes)):
            if axis is not None and (not isinstance(axis, numbers.Integral) or isinstance(axis, bool)):
                raise self.no_axis(axis)
            if axis is not None and not -leaf.dim() <= axis < leaf.dim():
                raise StowageError(f"{word}: input {index} has {leaf.dim()} axes and no axis {axis}")
        self.axes: list[int | None] = list(axes)
        self.batch = min((self.size(index) for index, axis in enumerate(self.axes) if axis is not None),
                         default=None)
        self.check_sizes()

    def no_axis(self, axis: Any) -> StowageError:
        return StowageError(f"{self.word}: {axis!r} is no axis",
                            f"a number from 0 on, or {self.none} where a tensor has no batch")

    def size(self, index: int) -> int:
        return int(self.tensors[index].shape[self.axes[index] or 0])

    def check_sizes(self) -> None:
        """Raises StowageError for a size that is no multiple of the batch, or where nobody said whether
        it is one."""
        for index, axis in enumerate(self.axes):
            if axis is None or self.batch is None:
                continue
            shape = list(self.tensors[index].shape)
            if self.size(index) == 0:
                raise StowageError(f"input {index} of shape {shape} has nothing along axis {axis}",
                                   "give it a batch of at least 1")
            if self.batch == 0 or self.size(index) == self.batch:
                continue
            if self.size(index) % self.batch:
                raise StowageError(
                    f"input {index} of shape {shape} has {self.size(index)} along axis {axis}, which is "
                    f"no multiple of the batch {self.batch}",
                    f"{self.word} says which axis is the batch: {self.written([0, 1, None])}")
            if not self.is_said:
                sizes = [self.size(other) if has is not None else None
                         for other, has in enumerate(self.axes)]
                first = next(size for size in sizes if size is not None)
                example = [0 if size == first else None for size in sizes]
                raise StowageError(
                    f"input {index} of shape {shape} has {self.size(index)} along axis {axis} where "
                    f"another has {self.batch}: which of them is the batch is not known",
                    f"{self.word} says it, with {self.none} for a tensor that does not follow the batch, "
                    f"for example {self.written(example)}")

    @property
    def none(self) -> str:
        return "none" if self.word.startswith("--") else "None"

    def written(self, axes: list[int | None]) -> str:
        if self.word.startswith("--"):
            return f"{self.word} " + ",".join(str(axis).lower() for axis in axes)
        return f"{self.word}={axes}"

    def check_batch(self, batch: int | None) -> None:
        """Raises StowageError where another batch than that of the tensors is asked for and none of
        them follows it."""
        if batch is not None and self.batch is None:
            raise StowageError(f"batch {batch} is asked for, and no input follows the batch",
                               f"leave the batch out, or say by {self.word} which axis is the batch")

    def fixed(self) -> FixedBatch | None:
        """Why the batch is fixed; None: it is not."""
        if self.batch is not None:
            return None
        if self.is_said:
            return FixedBatch()
        return FixedBatch("no input has an axis that could be the batch",
                          "give the batch's tensors to the step as arguments")

    def example(self, batch: int) -> Example:
        """The Example at that batch; at its own, the very tensors."""
        axes, made = iter(self.axes), {}
        leaves = []
        for leaf in self.leaves:
            if isinstance(leaf, torch.Tensor):
                key = (id(leaf), next(axes))  # a tensor that stands there twice stays one
                if key not in made:
                    made[key] = self.at(leaf, key[1], batch)
                leaf = made[key]
            leaves.append(leaf)
        return Example(*tree_unflatten(leaves, self.structure))

    def at(self, leaf: torch.Tensor, axis: int | None, batch: int) -> torch.Tensor:
        if axis is None or self.batch is None or batch == self.batch:
            return leaf
        shape = list(leaf.shape)
        shape[axis] = shape[axis] // self.batch * batch
        # Dense, with the axes in the order in which they lie.
        order = sorted(range(leaf.dim()), key=lambda a: (-leaf.stride(a), leaf.shape[a] == 1, a))
        strides, step = [0] * leaf.dim(), 1
        for place in reversed(order):
            strides[place], step = step, step * shape[place]
        return torch.empty_strided(shape, strides, dtype=leaf.dtype, device=leaf.device)
