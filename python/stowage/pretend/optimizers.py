"""Optimizers choose their foreach form for fake tensors too.

They choose it only for the exact types Tensor and Parameter, and fused only on devices whose name
they know.
"""

import contextlib
from unittest import mock


@contextlib.contextmanager
def foreach_for_fake_tensors():
    import torch.optim.optimizer as optimizer_module
    import torch.utils._foreach_utils as foreach_utils
    from torch._subclasses.fake_tensor import FakeTensor

    with contextlib.ExitStack() as stack:
        for module in (optimizer_module, foreach_utils):
            types = [*module._foreach_supported_types, FakeTensor]
            stack.enter_context(mock.patch.object(module, "_foreach_supported_types", types))
        yield
