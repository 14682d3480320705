"""Fused optimizer steps, which PyTorch runs on CUDA but cannot run on tensors without values.

`torch.optim.SGD(fused=True)` calls `aten::_fused_sgd_`, one kernel that writes the parameters and their
state in place and makes no tensor. PyTorch 2.15 has such a step without values for Adam and AdamW alone.
`fused_steps` registers the others that have a kernel for CUDA: they do nothing, since only values change.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def steps_without_meta() -> list[str]:
    """The fused in-place updates with a kernel for CUDA and none for tensors without values, without
    "aten::", sorted."""
    import torch

    def has(name: str, key: str) -> bool:
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, key))

    names = [name for name in torch._C._dispatch_get_all_op_names()
             if name.startswith("aten::_fused_") and name.partition(".")[0].endswith("_")]
    return sorted(name.removeprefix("aten::") for name in names
                  if has(name, "CUDA") and not has(name, "Meta"))


def changes_values_only(*_arguments: object, **_options: object) -> None:
    """The step, for tensors without values."""


@contextlib.contextmanager
def fused_steps() -> Iterator[None]:
    """While active, every fused optimizer of this PyTorch steps on tensors without values."""
    import torch

    with torch.library._scoped_library("aten", "IMPL") as library:
        for name in steps_without_meta():
            library.impl(name, changes_values_only, "Meta")
        yield
