"""Whether a tensor stays within its storage at every batch.

Sizes are measured at a few batches and written for all. A step may use more than its storages have at a
batch that was not measured: of an axis that is called the batch and is none, the second row at batch 1.
The reader of step files refuses such a file, so that the batch is fixed instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stowage.document.affine import NotAffine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stowage.document.affine import Dimension

# The reach is linear in the batch where a shape has one axis that grows: two batches tell it.
SMALLEST, LARGE = 1, 1 << 20


class Extent(NamedTuple):
    """A tensor's sizes and strides in elements of `itemsize` bytes."""

    shape: tuple[Dimension, ...]
    strides: tuple[Dimension, ...]
    offset: int | Sequence[int]
    itemsize: int

    def reach(self, batch: int) -> int:
        """One past the last byte of the storage that the tensor uses at the batch."""
        last = at_batch(self.offset, batch) + sum(
            (at_batch(size, batch) - 1) * at_batch(stride, batch)
            for size, stride in zip(self.shape, self.strides))
        return (last + 1) * self.itemsize

    def check(self, storage_bytes: int | Sequence[int], where: str) -> None:
        """Raises NotAffine, which names `where`, for a tensor that does not stay within so many bytes, or
        whose elements grow faster than the batch."""
        if 0 in self.shape:
            return
        growing = [size for size in self.shape if not isinstance(size, int) and size[1]]
        if len(growing) > 1:
            raise NotAffine(f"{where}: a tensor has {len(growing)} axes that grow with the batch")
        for batch in (SMALLEST, LARGE):
            if self.reach(batch) > at_batch(storage_bytes, batch):
                raise NotAffine(f"{where}: at batch {batch} it would use {self.reach(batch)} bytes of a "
                                f"tensor of {at_batch(storage_bytes, batch)} bytes")


def at_batch(size: int | Sequence[int], batch: int) -> int:
    """The value of constant + slope * batch."""
    return size if isinstance(size, int) else size[0] + size[1] * batch
