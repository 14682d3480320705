"""Calls of the kernels of Stowage's own set with their arguments and PyTorch's results, written as
kernels/*.json.

As in operators.py, inputs are float32 numbers (two decimals, to keep the files small), and the
results are computed in float64 on the CPU and rounded to float32 at the end.
"""

import zlib

import torch

import json_format
import kernel_cases
from kernel_call import Call, Draw

SIGNIFICANT_DIGITS = 9


def numbers(tensor):
    """{"shape", "values"} and, where it is not float32, "dtype"; values row-major."""
    flat = tensor.detach().reshape(-1)
    if tensor.is_floating_point():
        values = [float(f"{x:.{SIGNIFICANT_DIGITS}g}") for x in flat.to(torch.float32).tolist()]
        return {"shape": list(tensor.shape), "values": values}
    dtype = str(tensor.dtype).removeprefix("torch.")
    values = [int(x) for x in flat.tolist()]
    return {"shape": list(tensor.shape), "dtype": dtype, "values": values}


def argument(value):
    """A tensor, or what a kernel only has to find room for: {"shape", "dtype"}."""
    return numbers(value) if isinstance(value, torch.Tensor) else value


def kernel_case(name, build):
    """`build(draw)` gives the tensors by name and the calls over those names."""
    draw = Draw(torch.Generator().manual_seed(zlib.crc32(name.encode())))
    tensors, calls = build(draw)
    return {"name": name, "tensors": {key: argument(value) for key, value in tensors.items()},
            "calls": [call.described() for call in calls]}


def write(folder):
    torch.use_deterministic_algorithms(True)
    for family, cases in kernel_cases.FAMILIES.items():
        rows = [kernel_case(name, build) for name, build in cases]
        names = [row["name"] for row in rows]
        if len(set(names)) != len(names):
            raise AssertionError(f"{family}: case names must be unique")
        json_format.write(folder / f"{family}.json",
                          {"schema_version": 1, "torch": torch.__version__, "cases": rows})
        print(f"kernels/{family}.json: {len(rows)} cases", flush=True)
    torch.use_deterministic_algorithms(False)
