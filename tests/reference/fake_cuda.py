"""Run PyTorch programs on "cuda" tensors that hold no data, on a machine without a GPU.

FakeTensorMode dispatches every operator as CUDA would (cudnn_batch_norm, native_dropout with a
bool mask, foreach optimizers, ...) but allocates nothing. Nine things keep it from being what
CUDA does; each is repaired here and nowhere else:

1. The autograd engine needs a driver (see fake_cuda_shim.cpp): `relaunch_with_shim`.
2. Optimizers pick foreach only for the exact types Tensor and Parameter: FakeTensor is added.
3. scaled_dot_product_attention asks the device which kernels it has; the shim answers as an A100
   does, and PyTorch then chooses (flash for bf16 and fp16 without a mask, else memory-efficient).
4. transformers looks at the *values* of the position ids to find packed sequences; there are none.
5. nn.LSTM puts its weights into one buffer and calls cuDNN's operator, neither without a driver:
   `moved_to_fake`, `cudnn_lstm`. The gradients are views of one buffer, as cuDNN's.
6. torch.autocast switches itself off without a device: `autocast`.
7. A convolution in bfloat16 is cuDNN's only on a device that has bfloat16, and only cuDNN's lies
   with its channels innermost: it chooses with the shim's answers, as attention does.
8. The result of cuDNN's recurrent networks with the batch first, and the gradient of their input,
   are transposed (`transpose_(0, 1)` in ATen/native/cudnn/RNN.cpp): `cudnn_rnn`.
9. What FakeTensorMode remembers of an operator forgets storages larger than their tensors, such as
   the gradient of attention's mask, whose rows have 16 elements: it shall remember nothing.
"""

import contextlib
import ctypes
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import weakref
from unittest import mock

SHIM_SOURCE = pathlib.Path(__file__).with_name("fake_cuda_shim.cpp")
SHIM_VARIABLE = "STOWAGE_FAKE_CUDA_SHIM"
MORE_DEVICES_THAN_THE_GUARD_HAS = 127


def cuda_headers():
    """The folder with CUDA's headers among the packages that torch brings along."""
    for folder in importlib.util.find_spec("nvidia").submodule_search_locations:
        for header in sorted(pathlib.Path(folder).glob("*/include/driver_types.h")):
            return header.parent
    raise FileNotFoundError("driver_types.h in the nvidia packages")


def build_shim(folder, *definitions):
    """The shim as a library in the folder; `definitions` are the compiler's, such as
    -DSTOWAGE_FAKE_MAJOR=9."""
    library = pathlib.Path(folder) / "libcuda.so.1"
    command = ["g++", "-O1", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1",
               f"-I{cuda_headers()}", *definitions, "-o", str(library), str(SHIM_SOURCE)]
    subprocess.run(command, check=True)
    return library


def relaunch_with_shim(*definitions):
    """Build the shim and start this program again with it preloaded (returns in the second run)."""
    if os.environ.get(SHIM_VARIABLE):
        return
    library = build_shim(tempfile.mkdtemp(prefix="stowage-shim-"), *definitions)
    environment = dict(os.environ, LD_PRELOAD=str(library))
    environment[SHIM_VARIABLE] = str(library)
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


@contextlib.contextmanager
def backward_possible():
    """While active, the autograd engine believes in CUDA devices; wrap only `backward()` in it. It
    nests: a checkpointed region runs its attention again within backward."""
    before = ctypes.CDLL(None).stowage_show_devices(MORE_DEVICES_THAN_THE_GUARD_HAS)
    try:
        yield
    finally:
        ctypes.CDLL(None).stowage_show_devices(before)


def choosing_by_device(function):
    """The function, which may see the device while it chooses its kernel."""
    def choose(*arguments, **options):
        with backward_possible():
            return function(*arguments, **options)

    return choose


def cudnn_lstm(inputs, hidden, weights, _has_biases, layers, dropout, train, bidirectional,
               batch_first):
    """What _VF.lstm calls on CUDA. The size of cuDNN's reserve is not known without a GPU: it has 0
    bytes here."""
    import torch

    weights_per_layer, lstm_mode, no_projection = 4, 2, 0
    storage = weights[0].untyped_storage()
    buffer = weights[0].detach().as_strided((storage.nbytes() // weights[0].element_size(),), (1,), 0)
    output, h, c, _, _ = torch.ops.aten._cudnn_rnn(
        inputs, weights, weights_per_layer, buffer, hidden[0], hidden[1], lstm_mode,
        hidden[0].shape[2], no_projection, layers, batch_first, dropout, train, bidirectional, [],
        None)
    return output, h, c


def batch_lies_second(tensor):
    """A new tensor of that shape, [batch, length, features], made as [length, batch, features]."""
    batch, _, features = tensor.shape
    return tensor.new_empty_strided(tensor.shape, (features, batch * features, 1))


def cudnn_rnn(*arguments):
    """The shapes of _cudnn_rnn, and the layout of its result."""
    import torch

    output, *states = torch._meta_registrations._cudnn_rnn(*arguments)
    batch_first = arguments[10]
    return (batch_lies_second(output) if batch_first else output, *states)


def cudnn_rnn_backward(inputs, weight, _stride, buffer, hx, cx, *rest):
    """The shapes of _cudnn_rnn_backward, for which PyTorch has none: gradients of the weights are
    views of one buffer of zeros, as in RNN.cpp."""
    batch_first, wanted = rest[8], rest[-1]
    gradients, offset = buffer.new_zeros(buffer.shape), 0
    views = []
    for tensor in weight:
        views.append(gradients[offset:offset + tensor.numel()].view(tensor.shape))
        offset += tensor.numel()
    grad_inputs = batch_lies_second(inputs) if batch_first else inputs.new_empty(inputs.shape)
    return (grad_inputs, hx.new_empty(hx.shape) if wanted[1] else None,
            cx.new_empty(cx.shape) if wanted[2] else None, views)


def flatten_recurrent_weights(module):
    """Let the weights of an nn.LSTM be views of one buffer, as flatten_parameters does."""
    import torch

    weights, offset = [getattr(module, name) for name in module._flat_weights_names], 0
    buffer = torch.empty(sum(w.numel() for w in weights), device=weights[0].device)
    for weight in weights:
        weight.data = buffer[offset:offset + weight.numel()].view(weight.shape)
        offset += weight.numel()
    module._flat_weights = weights
    module._flat_weight_refs = [weakref.ref(w) for w in weights]  # else it would flatten again


def moved_to_fake(model, dtype=None):
    """The model, made on the device "meta", with fake CUDA tensors; floating point ones in `dtype`
    if given. Making a model there lets it look at values while it is made, which fake tensors lack.
    """
    import torch

    def fake(tensor):
        kept = dtype if dtype and tensor.is_floating_point() else tensor.dtype
        return torch.empty(tensor.shape, dtype=kept, device="cuda")

    parameters = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                if parameter not in parameters:
                    parameters[parameter] = torch.nn.Parameter(fake(parameter),
                                                               parameter.requires_grad)
                module._parameters[name] = parameters[parameter]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = fake(buffer)
        if isinstance(module, torch.nn.LSTM):
            flatten_recurrent_weights(module)
    return model


@contextlib.contextmanager
def autocast(dtype):
    """torch.autocast("cuda", dtype), which without a device would switch itself off."""
    import torch

    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", dtype)
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled("cuda", before[0])
        torch.set_autocast_dtype("cuda", before[1])


def no_packed_sequences():
    """While active, transformers does not look for packed sequences in the position ids."""
    import transformers.masking_utils as masking_utils

    return mock.patch.object(masking_utils, "find_packed_sequence_indices",
                             lambda position_ids: None)


def packed_sequences():
    """While active, transformers finds packed sequences in position ids, whatever their values."""
    import torch
    import transformers.masking_utils as masking_utils

    def indices(position_ids):  # as it computes them, but for the look at the values
        first = position_ids[:, :1] - 1
        return (torch.diff(position_ids, prepend=first, dim=-1) != 1).cumsum(-1)

    return mock.patch.object(masking_utils, "find_packed_sequence_indices", indices)


@contextlib.contextmanager
def fake_cuda():
    """FakeTensorMode plus the repairs 2 to 5 and 7 to 9; make models under `torch.device("cuda")` inside."""
    import torch
    import torch.nn.functional as functional
    import torch.nn.modules.rnn as rnn_module
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    import torch.optim.optimizer as optimizer_module
    import torch.utils._foreach_utils as foreach_utils

    with contextlib.ExitStack() as stack:
        for module in (optimizer_module, foreach_utils):
            types = [*module._foreach_supported_types, FakeTensor]
            stack.enter_context(mock.patch.object(module, "_foreach_supported_types", types))
        stack.enter_context(mock.patch.object(
            functional, "scaled_dot_product_attention",
            choosing_by_device(functional.scaled_dot_product_attention)))
        stack.enter_context(mock.patch.object(
            torch._C, "_select_conv_backend", choosing_by_device(torch._C._select_conv_backend)))
        stack.enter_context(mock.patch.object(rnn_module._VF, "lstm", cudnn_lstm))
        library = stack.enter_context(torch.library._scoped_library("aten", "IMPL"))
        library.impl("_cudnn_rnn", cudnn_rnn, "Meta", allow_override=True)
        library.impl("_cudnn_rnn_backward", cudnn_rnn_backward, "Meta")
        stack.enter_context(no_packed_sequences())
        mode = stack.enter_context(FakeTensorMode())
        mode.cache_enabled = False
        yield mode
