"""Steps aside where PyTorch allows no hooks of saved tensors: within torch.func.grad, vjp, jacrev and
hessian, and where a script says so itself (torch.autograd.graph.disable_saved_tensors_hooks). PyTorch
raises an error there as long as any hooks are active; so ours are taken off the stack for that long, and
what is saved within stays on the device.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch
from torch.autograd import graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stowage.plans.applied import ThreadHooks

original = graph.disable_saved_tensors_hooks
users = 0  # plans that are applied, in all threads


def are_allowed() -> bool:
    """Whether hooks may be set now, in this thread."""
    return bool(torch._C._autograd._saved_tensors_hooks_is_enabled())


def disabling(hooks: ThreadHooks) -> Callable[[str], contextlib.AbstractContextManager[None]]:
    @contextlib.contextmanager
    def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
        with hooks.set_aside(), original(error_message):
            yield

    return disable_saved_tensors_hooks


@contextlib.contextmanager
def stepping_aside(hooks: ThreadHooks) -> Iterator[None]:
    """While active, PyTorch's way to forbid hooks takes these off first."""
    global users
    users += 1
    if users == 1:
        graph.disable_saved_tensors_hooks = disabling(hooks)
    try:
        yield
    finally:
        users -= 1
        if users == 0:
            graph.disable_saved_tensors_hooks = original
