"""Example inputs at another batch: which axis of each tensor is the batch."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from stowage.errors import StowageError
from stowage.sources.source import Example

# The axis of all tensors that is the batch, or one for each; None: the tensor does not follow it.
Axes: TypeAlias = int | Sequence[int | None] | None


class BatchAxes:
    """`axes` is an axis for all tensors, or a list with one for each, in the order of arguments,
    keywords and target; None: that tensor does not follow the batch. An axis of several times the
    batch (tokens of all samples in a row) grows with it. What is no tensor stays as it is."""

    def __init__(self, arguments: tuple[Any, ...], keywords: dict[str, Any], target: Any,
                 axes: Axes = 0) -> None:
        self.leaves, self.structure = tree_flatten((tuple(arguments), dict(keywords), target))
        tensors = [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]
        if axes is None or not isinstance(axes, Sequence):
            axes = [axes if leaf.dim() else None for leaf in tensors]
        if len(axes) != len(tensors):
            raise StowageError(f"batch_axes has {len(axes)} entries for {len(tensors)} tensors",
                               "one for each, None where a tensor does not follow the batch")
        for index, (leaf, axis) in enumerate(zip(tensors, axes)):
            if axis is not None and (not isinstance(axis, numbers.Integral) or isinstance(axis, bool)):
                raise StowageError(f"batch_axes: {axis!r} is no axis",
                                   "a number from 0 on, or None where a tensor has no batch")
            if axis is not None and not -leaf.dim() <= axis < leaf.dim():
                raise StowageError(f"batch_axes: input {index} has {leaf.dim()} axes and no axis "
                                   f"{axis}")
        self.axes = list(axes)
        sizes = [leaf.shape[axis] for leaf, axis in zip(tensors, axes) if axis is not None]
        self.batch = min(sizes, default=None)
        if self.batch == 0:
            index = next(i for i, (leaf, axis) in enumerate(zip(tensors, axes))
                         if axis is not None and leaf.shape[axis] == 0)
            raise StowageError(f"input {index} of shape {list(tensors[index].shape)} has no sample "
                               f"along axis {axes[index]}", "a batch has at least 1")
        for index, (leaf, axis) in enumerate(zip(tensors, axes)):
            if axis is not None and self.batch and leaf.shape[axis] % self.batch:
                raise StowageError(
                    f"input {index} of shape {list(leaf.shape)} has {leaf.shape[axis]} along axis "
                    f"{axis}, which is no multiple of the batch {self.batch}",
                    "batch_axes says which axis is the batch: batch_axes=[0, 1, None]")

    def example(self, batch: int) -> Example:
        """The Example at that batch; at its own, the very tensors."""
        axes = iter(self.axes)
        leaves = [self.at(leaf, next(axes), batch) if isinstance(leaf, torch.Tensor) else leaf
                  for leaf in self.leaves]
        return Example(*tree_unflatten(leaves, self.structure))

    def at(self, leaf: torch.Tensor, axis: int | None, batch: int) -> torch.Tensor:
        if axis is None or batch == self.batch:
            return leaf
        shape = list(leaf.shape)
        shape[axis] = shape[axis] // self.batch * batch
        # Dense, with the axes in the order in which they lie.
        order = sorted(range(leaf.dim()), key=lambda a: (-leaf.stride(a), leaf.shape[a] == 1, a))
        strides, step = [0] * leaf.dim(), 1
        for place in reversed(order):
            strides[place], step = step, step * shape[place]
        return torch.empty_strided(shape, strides, dtype=leaf.dtype, device=leaf.device)
