#!/usr/bin/env python3
"""Write torchao_linear.json: what a linear layer of torchao's weights holds while it runs, at its peak.

    python torchao_linear.py

Storages are counted on the CPU as they appear and go, beside the inputs, the weight and its tables.
Rows are [1, 256] and [2, 160]; inputs and weights are in bfloat16 and float32.

Where torchao's code takes another path on the CPU it is led onto CUDA's:

- `_is_device("cpu", ...)` of kernel/intmm.py is answered with no, and `safe_int_mm` is what it does on
  CUDA: a contiguous copy of the second operand, then torch._int_mm. With up to 16 rows, which
  torch._int_mm refuses on CUDA (ATen/native/cuda/Blas.cpp, _int_mm_out_cuda), both in float32.
- torch._scaled_mm is replaced by an allocation of its result: its workspace is cuBLASLt's, which is
  not counted here.
- The check of the card (`_check_hardware_support`) is answered with yes.
"""

import importlib.metadata
import json
import pathlib
from unittest import mock

import torch
import torchao.kernel.intmm
import torchao.quantization.quant_api
from nf4_loading import LiveStorages
from torchao.quantization import (
    Float8DynamicActivationFloat8WeightConfig,
    Float8WeightOnlyConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    PerRow,
    PerTensor,
    quantize_,
)
from torchao.quantization.granularity import PerGroup
from torchao.quantization.quant_primitives import MappingType

HERE = pathlib.Path(__file__).parent
IN, OUT = 512, 384
ROWS_WITHOUT_INT_MM = 16
ROWS = ((1, 8), (1, 256), (2, 160))
CONFIGS = {
    "int8": lambda: Int8WeightOnlyConfig(),
    "int8 tensor": lambda: Int8WeightOnlyConfig(granularity=PerTensor()),
    "int8 group 32": lambda: Int8WeightOnlyConfig(granularity=PerGroup(32)),
    "float8": lambda: Float8WeightOnlyConfig(),
    "float8 tensor": lambda: Float8WeightOnlyConfig(granularity=PerTensor()),
    "float8 group 32": lambda: Float8WeightOnlyConfig(granularity=PerGroup(32)),
    "int8 inputs": lambda: Int8DynamicActivationInt8WeightConfig(),
    "int8 inputs tensor": lambda: Int8DynamicActivationInt8WeightConfig(granularity=PerTensor()),
    "int8 inputs asymmetric": lambda: Int8DynamicActivationInt8WeightConfig(
        act_mapping_type=MappingType.ASYMMETRIC),
    "float8 inputs": lambda: Float8DynamicActivationFloat8WeightConfig(),
    "float8 inputs row": lambda: Float8DynamicActivationFloat8WeightConfig(granularity=PerRow()),
}


def safe_int_mm(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """torchao's of that name, on CUDA."""
    second = second.contiguous()
    if first.shape[0] <= ROWS_WITHOUT_INT_MM:
        return torch.matmul(first.to(torch.float32), second.to(torch.float32)).to(torch.int32)
    return torch._int_mm(first, second)


def scaled_mm(first: torch.Tensor, second: torch.Tensor, out_dtype: torch.dtype,
              **_: object) -> torch.Tensor:
    return torch.empty(first.shape[0], second.shape[1], dtype=out_dtype)


def parts(linear: torch.nn.Linear) -> list[torch.Tensor]:
    """The weight's tensors, and the bias."""
    weight = linear.weight
    found = [weight.qdata, weight.scale, getattr(weight, "zero_point", None), linear.bias]
    return [tensor for tensor in found if tensor is not None]


def measured(name: str, dtype: torch.dtype, rows: tuple[int, int], bias: bool) -> dict | None:
    if name == "float8 inputs row" and dtype != torch.bfloat16:
        return None  # torchao refuses it
    layer = torch.nn.Sequential(torch.nn.Linear(IN, OUT, bias=bias, dtype=dtype))
    quantize_(layer, CONFIGS[name]())
    x = torch.randn(*rows, IN, dtype=dtype)
    storages = LiveStorages()
    for tensor in (x, *parts(layer[0])):
        storages.sizes[tensor.untyped_storage()._cdata] = 0
    with torch.no_grad(), storages:
        y = layer(x)
    assert y.shape == (*rows, OUT)
    return {"config": name, "dtype": str(dtype).removeprefix("torch."), "rows": list(rows),
            "bias": bias, "peak_bytes": storages.peak}


def main() -> None:
    with mock.patch.object(torchao.quantization.quant_api, "_check_hardware_support",
                           lambda granularities: None), \
            mock.patch.object(torchao.kernel.intmm, "_is_device", lambda *_: False), \
            mock.patch.object(torchao.kernel.intmm, "safe_int_mm", safe_int_mm), \
            mock.patch.object(torch, "_scaled_mm", scaled_mm):
        found = [measured(name, dtype, rows, bias) for name in CONFIGS
                 for dtype in (torch.bfloat16, torch.float32) for rows in ROWS
                 for bias in (False, True)]
    versions = {name: importlib.metadata.version(name) for name in ("torch", "torchao")}
    text = ",\n".join(f" {json.dumps(row)}" for row in found if row)
    (HERE / "torchao_linear.json").write_text(
        f'{{"versions": {json.dumps(versions)}, "in": {IN}, "out": {OUT},\n"rows": [\n{text}\n]}}\n')


if __name__ == "__main__":
    main()
