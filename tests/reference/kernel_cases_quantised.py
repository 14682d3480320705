"""Weights out of their quantised bytes, as bitsandbytes quantises them on the CPU, and PyTorch's
float8."""

import torch

from kernel_call import Call


def quantised_on_cpu(draw, *shape):
    return draw.normal(*shape).to(torch.float32)


def four_bits(kind, shape):
    def build(draw):
        import bitsandbytes.functional as functional

        packed, state = functional.quantize_4bit(quantised_on_cpu(draw, *shape), blocksize=64,
                                                 quant_type=kind)
        w = functional.dequantize_4bit(packed, state).reshape(shape)
        return ({"q": packed, "absmax": state.absmax, "code": state.code, "w": w},
                [Call("dequantize_4bit", {"block": 64}, ["q", "absmax", "code"], ["w"])])
    return f"{kind} {list(shape)}", build


def maxima(count):
    def build(draw):
        import bitsandbytes.functional as functional

        values = draw.uniform(0.5, 2, count).to(torch.float32)
        offset = values.mean()
        q, state = functional.quantize_blockwise(values - offset, blocksize=256)
        y = functional.dequantize_blockwise(q, state) + offset
        return ({"q": q, "absmax": state.absmax, "code": state.code, "offset": offset.reshape(()),
                 "y": y},
                [Call("dequantize_blocks", {"block": 256}, ["q", "absmax", "code", "offset"],
                      ["y"])])
    return f"maxima of {count} blocks", build


def rows_of_int8(shape):
    def build(draw):
        import bitsandbytes.functional as functional

        q, scales, _ = functional.int8_vectorwise_quant(draw.normal(*shape).to(torch.float16))
        w = functional.int8_vectorwise_dequant(q, scales)
        return ({"q": q.view(torch.uint8), "scales": scales, "w": w},
                [Call("dequantize_rows", {"encoding": "int8"}, ["q", "scales"], ["w"])])
    return f"int8 {list(shape)}", build


def every_float8():
    def build(draw):
        q = torch.tensor([b for b in range(256) if b & 0x7f != 0x7f], dtype=torch.uint8)
        q = q.reshape(2, 127)
        scales = draw.uniform(0.5, 2, 2, 1)
        w = q.view(torch.float8_e4m3fn).to(torch.float64) * scales
        return ({"q": q, "scales": scales, "w": w},
                [Call("dequantize_rows", {"encoding": "float8"}, ["q", "scales"], ["w"])])
    return "every float8", build


CASES = [
    four_bits("nf4", (4, 48)),
    four_bits("nf4", (2, 64)),
    four_bits("fp4", (4, 48)),
    maxima(300),
    rows_of_int8((3, 16)),
    every_float8(),
]
