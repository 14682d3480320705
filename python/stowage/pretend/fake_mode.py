"""FakeTensorMode, told that the device of which torch.cuda speaks is not there."""

import contextlib
from unittest import mock


@contextlib.contextmanager
def fake_tensors():
    """While active, tensors are fake; yields the mode."""
    import torch._subclasses.fake_tensor as fake_tensor

    class WithoutDevice(fake_tensor.FakeTensorMode):
        avoid_device_init = True

    # Torch makes a real tensor on the device first, where torch.cuda.is_available().
    with mock.patch.object(fake_tensor, "init_gpu_context", lambda _device: None):
        with WithoutDevice(allow_non_fake_inputs=True) as mode:
            # What FakeTensorMode remembers of an operator forgets storages larger than their
            # tensors, such as the gradient of attention's mask, whose rows have 16 elements.
            mode.cache_enabled = False
            yield mode
