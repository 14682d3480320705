"""cuDNN's recurrent networks, for which PyTorch has shapes only in part.

nn.LSTM, nn.GRU and nn.RNN put their weights into one buffer, when they are made on the device, when
they are moved there and when their user asks for it (RNNBase.flatten_parameters), and call cuDNN's
operator; neither happens without a driver. `flatten_weights` makes the buffer; `cudnn_recurrent` lets
torch's functions call the operator. As in ATen/native/cudnn/RNN.cpp, each call copies weights that are
not in one buffer into a new one, and so it does under autocast. With the batch first its result and the
gradient of its input are transposed (`transpose_(0, 1)`), and the gradients of the weights are views of
one buffer. The size of cuDNN's reserve is not known without a GPU: it has 0 bytes here.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch

# cudnnRNNMode_t
MODES = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}


def weight_buffer(weights: list[torch.Tensor]) -> torch.Tensor | None:
    """The buffer that all weights are views of, as one tensor; None: they are not in one."""
    storage = weights[0].untyped_storage()
    if any(weight.untyped_storage()._cdata != storage._cdata for weight in weights[1:]):
        return None
    elements = storage.nbytes() // weights[0].element_size()
    if elements != elements_of(weights):
        return None
    return weights[0].detach().as_strided((elements,), (1,), 0)


def elements_of(weights: list[torch.Tensor]) -> int:
    return sum(weight.numel() for weight in weights)


def half(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return tensor.to(torch.float16) if tensor.dtype in (torch.float32, torch.bfloat16) else tensor


def half_weights(weights: list[torch.Tensor]) -> list[torch.Tensor]:
    """The weights under autocast: copies in float16, whatever format autocast has, that lie in one new
    buffer. Each copy has its gradient (_cudnn_rnn_cast_reflatten, copy_weights_to_flat_buf_views in
    ATen/native/cudnn/RNN.cpp)."""
    import torch

    if weights[0].dtype == torch.float16:
        return weights
    buffer = torch.zeros(elements_of(weights), dtype=torch.float16, device=weights[0].device)
    copies, offset = [], 0
    for weight in weights:
        copy = buffer[offset:offset + weight.numel()].view(weight.shape).detach()
        copies.append(copy.copy_(weight))
        offset += weight.numel()
    return copies


def cell(name: str) -> Callable[..., Any]:
    """What _VF.<name> calls on CUDA, for inputs that are not packed."""
    import torch

    def call(inputs: torch.Tensor, hidden: Any, weights: list[torch.Tensor], has_biases: bool,
             layers: int, dropout: float, train: bool, bidirectional: bool,
             batch_first: bool) -> tuple[torch.Tensor, ...]:
        h, c = hidden if name == "lstm" else (hidden, None)
        if torch.is_autocast_enabled("cuda"):
            with torch.autocast("cuda", enabled=False):
                h, c = half(h), half(c) if c is not None else None
                return call(half(inputs), h if c is None else (h, c), half_weights(weights), has_biases,
                            layers, dropout, train, bidirectional, batch_first)
        size = h.shape[2] if c is None else c.shape[2]
        projected = h.shape[2] if h.shape[2] != size else 0  # nn.LSTM(proj_size=...)
        of_a_layer = (4 if has_biases else 2) + bool(projected)
        output, h, c, _reserve, _buffer = torch.ops.aten._cudnn_rnn(
            inputs, weights, of_a_layer, weight_buffer(weights), h, c, MODES[name], size, projected,
            layers, batch_first, dropout, train, bidirectional, [], None)
        return (output, h, c) if name == "lstm" else (output, h)

    return call


def empty_length_first(tensor: torch.Tensor) -> torch.Tensor:
    """A new tensor of that shape, [batch, length, features], made as [length, batch, features]."""
    batch, _, features = tensor.shape
    return tensor.new_empty_strided(tensor.shape, (features, batch * features, 1))


def forward_shapes(*arguments: Any) -> tuple[torch.Tensor, ...]:
    """The shapes of _cudnn_rnn, the layout of its result, and the buffer of its weights."""
    import torch

    output, *states, _ = torch._meta_registrations._cudnn_rnn(*arguments)
    weights, buffer, batch_first = arguments[1], arguments[3], arguments[10]
    if buffer is None:
        buffer = weights[0].new_empty(elements_of(weights))
    return (empty_length_first(output) if batch_first else output, *states, buffer)


def backward_shapes(inputs: torch.Tensor, weight: list[torch.Tensor], _stride: int,
                    buffer: torch.Tensor, hx: torch.Tensor, cx: torch.Tensor,
                    *rest: Any) -> tuple[Any, ...]:
    """The shapes of _cudnn_rnn_backward: gradients of the weights are views of one buffer."""
    batch_first, wanted = rest[8], rest[-1]
    gradients, offset = buffer.new_zeros(buffer.shape), 0
    views = []
    for tensor in weight:
        views.append(gradients[offset:offset + tensor.numel()].view(tensor.shape))
        offset += tensor.numel()
    grad_inputs = empty_length_first(inputs) if batch_first else inputs.new_empty(inputs.shape)
    return (grad_inputs, hx.new_empty(hx.shape) if wanted[1] else None,
            cx.new_empty(cx.shape) if wanted[2] else None, views)


def flatten_weights(module: torch.nn.Module) -> None:
    """Let the weights of a recurrent module be views of one buffer, as flatten_parameters does."""
    import torch

    weights, offset = [getattr(module, name) for name in module._flat_weights_names], 0
    buffer = torch.empty(sum(w.numel() for w in weights), device=weights[0].device,
                         dtype=weights[0].dtype)
    for weight in weights:
        weight.data = buffer[offset:offset + weight.numel()].view(weight.shape)
        offset += weight.numel()
    module._flat_weights = weights
    module._flat_weight_refs = [weakref.ref(w) for w in weights]  # else it would flatten again


def flatten_parameters(module: Any) -> None:
    """RNNBase.flatten_parameters: without effect unless all weights are on the device, in one format,
    and not in one buffer already."""
    from torch import Tensor

    weights = module._flat_weights
    if len(weights) != len(module._flat_weights_names) or not all(
            isinstance(weight, Tensor) and weight.device.type == "cuda" for weight in weights):
        return
    formats, tensors = {weight.dtype for weight in weights}, {id(weight) for weight in weights}
    if len(formats) > 1 or len(tensors) < len(weights):
        return
    if weight_buffer(weights) is None:
        flatten_weights(module)


@contextlib.contextmanager
def cudnn_recurrent() -> Iterator[None]:
    """While active, recurrent modules call cuDNN's operator."""
    import torch
    import torch.nn.modules.rnn as rnn_module

    with contextlib.ExitStack() as stack:
        for name in MODES:
            stack.enter_context(mock.patch.object(rnn_module._VF, name, cell(name)))
        stack.enter_context(mock.patch.object(rnn_module.RNNBase, "flatten_parameters",
                                              flatten_parameters))
        library = stack.enter_context(torch.library._scoped_library("aten", "IMPL"))
        library.impl("_cudnn_rnn", forward_shapes, "Meta", allow_override=True)
        library.impl("_cudnn_rnn_backward", backward_shapes, "Meta", allow_override=True)
        yield
