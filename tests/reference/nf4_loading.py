#!/usr/bin/env python3
"""Write nf4_loading.json: what torchao's NF4Tensor holds, and what making one holds at its peak.

    python nf4_loading.py

torchtune converts each weight on the GPU when it builds a model with quantize_base=True, and again
when it loads the checkpoint (NF4Tensor.copy_ from a plain tensor). Storages are counted on the CPU as
they appear and go, the weight itself among them, in bfloat16 and float32.
"""

import importlib.metadata
import json
import pathlib
import weakref
from collections.abc import Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torchao.quantization.quantize_.workflows.nf4.nf4_tensor import NF4Tensor

HERE = pathlib.Path(__file__).parent
PARTS = ("quantized_data", "quantized_scalers", "quantization_factor", "scaler_mean", "nf4")
SHAPES = ((4096, 4096), (14336, 4096))


class LiveStorages(TorchDispatchMode):
    """Adds up the storages that operators return, until they are freed."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self.sizes: dict[int, int] = {}

    def forget(self, key: int) -> None:
        self.live -= self.sizes.pop(key)

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (),
                           kwargs: dict | None = None) -> object:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if not isinstance(tensor, torch.Tensor):
                continue
            storage = tensor.untyped_storage()
            key = storage._cdata
            if key in self.sizes:
                continue
            self.sizes[key] = storage.nbytes()
            self.live += storage.nbytes()
            weakref.finalize(storage, self.forget, key)
        self.peak = max(self.peak, self.live)
        return result


def measured(shape: tuple[int, int], dtype: torch.dtype) -> dict:
    weight = torch.randn(shape, dtype=dtype)
    with LiveStorages() as storages:
        made = NF4Tensor.from_tensor(weight, 64, 256)
    held = sum(getattr(made, part).untyped_storage().nbytes() for part in PARTS)
    return {"shape": list(shape), "dtype": str(dtype).removeprefix("torch."), "held_bytes": held,
            "peak_bytes": storages.peak, "parts": {
                part: [list(getattr(made, part).shape),
                       str(getattr(made, part).dtype).removeprefix("torch.")] for part in PARTS}}


def main() -> None:
    rows = [measured(shape, dtype) for dtype in (torch.bfloat16, torch.float32)
            for shape in SHAPES]
    versions = {name: importlib.metadata.version(name) for name in ("torch", "torchao")}
    text = ",\n".join(f" {json.dumps(row)}" for row in rows)
    (HERE / "nf4_loading.json").write_text(
        f'{{"versions": {json.dumps(versions)},\n"rows": [\n{text}\n]}}\n')


if __name__ == "__main__":
    main()
