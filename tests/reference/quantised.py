"""Linear layers of quantised weights, without data, as bitsandbytes and torchao run them.

bitsandbytes' modules and autograd functions are its own. Its operators on CUDA are single ones for
the dispatcher, so that a trace sees none of their temporaries: `operators_written_out` has the steps
of bitsandbytes 0.50.2 (backends/cuda/ops.py) in their place. torchao's layer runs the steps that
torchao 0.18.0 runs for an input of 16 bits (Float8Tensor.dequantize, then a product), which
`torch.utils._python_dispatch` showed on real tensors on the CPU.
"""

import contextlib
from unittest import mock

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

BLOCK, NESTED_BLOCK = 64, 256


def divided_up(count, by):
    return -(-count // by)


def kept(module, name, tensor):
    """A part of the quantised weight, where traces count it."""
    module.register_buffer(name, tensor, persistent=False)
    return tensor


def empty(*shape, dtype):
    return torch.empty(shape, dtype=dtype, device="cuda")


def quantised_parameter(data, stands_for):
    parameter = torch.nn.Parameter(data, requires_grad=False)
    parameter.stands_for = stands_for
    return parameter


def with_4_bits(linear, kind, double_quant):
    import bitsandbytes
    from bitsandbytes.functional import QuantState

    out, inputs = linear.weight.shape
    dtype, count = linear.weight.dtype, out * inputs
    with unset_fake_temporarily():  # a fake tensor is no Params4bit
        made = bitsandbytes.nn.Linear4bit(inputs, out, bias=False, quant_type=kind, device="meta")
    blocks = divided_up(count, BLOCK)
    code = kept(made, "quant_map", empty(16, dtype=torch.float32))
    maxima = {"absmax": kept(made, "absmax", empty(
        blocks, dtype=torch.uint8 if double_quant else torch.float32))}
    if double_quant:
        maxima["state2"] = QuantState(
            absmax=kept(made, "nested_absmax", empty(divided_up(blocks, NESTED_BLOCK),
                                                     dtype=torch.float32)),
            code=kept(made, "nested_quant_map", empty(256, dtype=torch.float32)),
            blocksize=NESTED_BLOCK, dtype=torch.float32)
        maxima["offset"] = kept(made, "offset", empty(dtype=torch.float32))
    weight = quantised_parameter(empty(divided_up(count, 2), 1, dtype=torch.uint8), count)
    weight.quant_state = QuantState(shape=torch.Size((out, inputs)), code=code, blocksize=BLOCK,
                                    quant_type=kind, dtype=dtype, **maxima)
    made.weight = weight
    return made


def with_8_bits(linear):
    import bitsandbytes

    out, inputs = linear.weight.shape
    with unset_fake_temporarily():
        made = bitsandbytes.nn.Linear8bitLt(inputs, out, bias=False, has_fp16_weights=False,
                                            threshold=6.0, device="meta")
    weight = quantised_parameter(empty(out, inputs, dtype=torch.int8), out * inputs)
    made.weight = weight
    made.weight.CB = weight.data
    made.weight.SCB = kept(made, "SCB", empty(out, dtype=torch.float32))
    return made


class Float8Linear(torch.nn.Module):
    def __init__(self, linear):
        super().__init__()
        out, inputs = linear.weight.shape
        self.in_features, self.out_features = inputs, out
        self.weight = quantised_parameter(empty(out, inputs, dtype=torch.uint8), out * inputs)
        kept(self, "scale", empty(out, 1, dtype=torch.float32))

    def dequantised(self, dtype):
        """_dequantize_affine_float8, whose variables live until it returns."""
        values = self.weight.to(torch.float32)
        scaled = values * self.scale
        return scaled.to(dtype)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.dequantised(x.dtype))


def quantise(model, base, double_quant):
    """Replace the linear layers but the output's, as transformers does."""
    make = {"nf4": lambda layer: with_4_bits(layer, "nf4", double_quant),
            "fp4": lambda layer: with_4_bits(layer, "fp4", double_quant),
            "int8": with_8_bits, "fp8": Float8Linear}[base]
    for path, module in list(model.named_modules()):
        is_base = type(module) is torch.nn.Linear and "lora_" not in path
        if not is_base or path.split(".")[-1] == "lm_head":
            continue
        parent, _, name = path.rpartition(".")
        setattr(model.get_submodule(parent), name, make(module).train())
        if name == "base_layer":
            as_peft_wraps(model.get_submodule(parent), base)


def as_peft_wraps(adapted, base):
    """peft has a class of its own around bitsandbytes' layers; its forward pass is another."""
    import types

    from peft.tuners.lora import bnb

    kinds = {"nf4": bnb.Linear4bit, "fp4": bnb.Linear4bit, "int8": bnb.Linear8bitLt}
    if base in kinds:
        adapted.forward = types.MethodType(kinds[base].forward, adapted)


# ---- bitsandbytes' operators


def gemm_4bit(a, b, shape, absmax, blocksize, quant_type, bias=None, absmax_8bit=None,
              absmax_code=None, absmax_offset=None):
    """_dequant_linear_fallback."""
    if absmax_8bit is not None:
        made = torch.empty_like(absmax_8bit, dtype=torch.float32)
        absmax = made + absmax_offset
    weight = torch.empty(tuple(shape), dtype=a.dtype, device=a.device)
    return torch.nn.functional.linear(a, weight, bias)


def dequantize_4bit(packed, state):
    """functional.dequantize_4bit."""
    if state.nested:
        absmax = torch.empty_like(state.absmax, dtype=torch.float32)
        absmax += state.offset
    return torch.empty(state.shape, dtype=state.dtype, device=packed.device)


def int8_vectorwise_quant(a, threshold=0.0):
    """The result, the scales, and no column with outliers."""
    rows = a.numel() // a.shape[-1]
    row_stats = torch.empty(rows, device=a.device, dtype=torch.float32)
    out_row = torch.empty(a.shape, device=a.device, dtype=torch.int8)
    outliers = a.abs() >= threshold  # noqa: F841: lives until the function returns
    return out_row, row_stats, None


def int8_mixed_scaled_mm(a, ca, cb, sca, scb, outlier_cols=None, bias=None):
    product = torch.empty((*ca.shape[:-1], cb.shape[0]), device=a.device, dtype=torch.int32)
    out = torch.empty_like(product, dtype=torch.float16)
    return out.to(a.dtype), None


def int8_vectorwise_dequant(a, stats):
    """_ops.py; 127 divides."""
    return a * stats.view(-1, 1) * 7.874015718698502e-3


def dequantised_module_weight(module):
    """peft's dequantize_module_weight, which tells parameters by their class."""
    state = getattr(module.weight, "quant_state", None)
    if state is not None:
        return dequantize_4bit(module.weight.data, state)
    if hasattr(module.weight, "CB"):  # the first pass hands the scales over to the layer's state
        scales = module.weight.SCB if module.state.SCB is None else module.state.SCB
        return int8_vectorwise_dequant(module.weight.data, scales)
    return module.weight


@contextlib.contextmanager
def operators_written_out():
    import bitsandbytes.functional as functional
    from peft.tuners.lora import dora

    operators = torch.ops.bitsandbytes
    with mock.patch.object(operators.gemm_4bit, "default", gemm_4bit), \
            mock.patch.object(operators, "int8_mixed_scaled_mm", int8_mixed_scaled_mm), \
            mock.patch.object(functional, "dequantize_4bit", dequantize_4bit), \
            mock.patch.object(functional, "int8_vectorwise_quant", int8_vectorwise_quant), \
            mock.patch.object(dora, "dequantize_module_weight", dequantised_module_weight):
        yield
