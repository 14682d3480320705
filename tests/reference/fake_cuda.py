"""Run PyTorch programs on "cuda" tensors that hold no data, on a machine without a GPU.

FakeTensorMode dispatches every operator as CUDA would (cudnn_batch_norm, native_dropout with a
bool mask, foreach optimizers, ...) but allocates nothing. Four things keep it from being what
CUDA does; each is repaired here and nowhere else:

1. The autograd engine needs a driver (see fake_cuda_shim.cpp): `relaunch_with_shim`.
2. Optimizers pick foreach only for the exact types Tensor and Parameter: FakeTensor is added.
3. scaled_dot_product_attention asks the device for its kernels; without one it takes the math
   path. Float32 on CUDA takes the memory-efficient kernel, so that operator is called directly.
4. transformers looks at the *values* of the position ids to find packed sequences; there are none.
"""

import contextlib
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
from unittest import mock

SHIM_SOURCE = pathlib.Path(__file__).with_name("fake_cuda_shim.cpp")
SHIM_VARIABLE = "STOWAGE_FAKE_CUDA_SHIM"
MORE_DEVICES_THAN_THE_GUARD_HAS = 127


def relaunch_with_shim():
    """Build the shim and start this program again with it preloaded (returns in the second run)."""
    if os.environ.get(SHIM_VARIABLE):
        return
    library = pathlib.Path(tempfile.mkdtemp(prefix="stowage-shim-")) / "libcuda.so.1"
    command = ["g++", "-O1", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([*command, "-o", str(library), str(SHIM_SOURCE)], check=True)
    environment = dict(os.environ, LD_PRELOAD=str(library))
    environment[SHIM_VARIABLE] = str(library)
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def efficient_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
                        scale=None, enable_gqa=False):
    """What scaled_dot_product_attention calls for float32 CUDA tensors without a mask."""
    import torch

    if attn_mask is not None or enable_gqa:
        raise NotImplementedError("the reference models use neither masks nor grouped queries")
    keep_logsumexp = any(t.requires_grad for t in (query, key, value)) and torch.is_grad_enabled()
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        query, key, value, None, keep_logsumexp, dropout_p, is_causal, scale=scale)[0]


@contextlib.contextmanager
def backward_possible():
    """While active, the autograd engine believes in CUDA devices; wrap only `backward()` in it."""
    show_devices = ctypes.CDLL(None).stowage_show_devices
    show_devices(MORE_DEVICES_THAN_THE_GUARD_HAS)
    try:
        yield
    finally:
        show_devices(0)


def no_packed_sequences():
    """While active, transformers does not look for packed sequences in the position ids."""
    import transformers.masking_utils as masking_utils

    return mock.patch.object(masking_utils, "find_packed_sequence_indices",
                             lambda position_ids: None)


@contextlib.contextmanager
def fake_cuda():
    """FakeTensorMode plus the repairs 2 to 4; make models under `torch.device("cuda")` inside."""
    import torch
    import torch.nn.functional as functional
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    import torch.optim.optimizer as optimizer_module
    import torch.utils._foreach_utils as foreach_utils

    with contextlib.ExitStack() as stack:
        for module in (optimizer_module, foreach_utils):
            types = [*module._foreach_supported_types, FakeTensor]
            stack.enter_context(mock.patch.object(module, "_foreach_supported_types", types))
        stack.enter_context(mock.patch.object(
            functional, "scaled_dot_product_attention", efficient_attention))
        stack.enter_context(no_packed_sequences())
        yield stack.enter_context(FakeTensorMode())
