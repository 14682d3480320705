#!/usr/bin/env python3
"""Write int8_outliers.json: how many columns LLM.int8() would take for outliers in random weights.

    python int8_outliers.py     about 7 GB of memory, some minutes

A Llama 3.2 1B as transformers initialises it (seed 0, float32, tests/hf/llama-3.2-1b), 4 samples of
1,024 tokens, without its output layer. A column of a linear layer's input counts if one of its values,
in bfloat16 and then float16 as bitsandbytes 0.50.2 sees it, is at least 6.0 (int8_vectorwise_quant,
backends/cuda/ops.py). Each takes 2 bytes a row of the input (int8_mixed_scaled_mm's subA), which the
autograd node keeps.
"""

import importlib.metadata
import json
import pathlib
from collections.abc import Callable

import torch
import transformers

HERE = pathlib.Path(__file__).parent
CONFIG = HERE.parent / "hf" / "llama-3.2-1b" / "config.json"
BATCH, LENGTH, TOKENS = 4, 1024, 100
THRESHOLD = 6.0


def counting(counts: dict[str, int], path: str) -> Callable:
    def count(_: torch.nn.Module, arguments: tuple) -> None:
        x = arguments[0].to(torch.bfloat16).to(torch.float16)
        x = x.reshape(-1, x.shape[-1])
        counts[path] = int((x.abs() >= THRESHOLD).any(dim=0).sum())
    return count


def main() -> None:
    torch.manual_seed(0)
    content = json.loads(CONFIG.read_text())
    kind = content.pop("model_type")
    for name in ("torch_dtype", "dtype", "transformers_version"):
        content.pop(name, None)
    model = transformers.LlamaModel(transformers.CONFIG_MAPPING[kind].from_dict(content)).eval()
    counts: dict[str, int] = {}
    for path, layer in model.named_modules():
        if type(layer) is torch.nn.Linear:
            layer.register_forward_pre_hook(counting(counts, path))
    with torch.no_grad():
        model(torch.randint(0, TOKENS, (BATCH, LENGTH)))
    found = {path: count for path, count in counts.items() if count > 0}
    kept = sum(counts.values()) * BATCH * LENGTH * 2
    document = {"versions": {name: importlib.metadata.version(name)
                             for name in ("torch", "transformers", "bitsandbytes")},
                "rows": BATCH * LENGTH, "columns": found, "kept_bytes": kept}
    (HERE / "int8_outliers.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
