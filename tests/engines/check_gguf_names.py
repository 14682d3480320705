"""Holds the names that plans of serving have for llama.cpp against gguf's own tables.

    python tests/engines/check_gguf_names.py build/stowage

Each model is planned with all weights on the host, so that each weight of its blocks is overridden.
Each name has to be one that gguf (PyPI) writes for the model's architecture; of names that GGUF's
releases tell apart (the experts' gate and up products, apart or as one) at least one has to be.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf  # type: ignore[import-untyped]

CONFIGS = Path(__file__).resolve().parent.parent / "hf"
ARCHITECTURES = {
    "small-llama": "LLAMA",
    "small-mistral": "LLAMA",
    "small-mixtral": "LLAMA",
    "small-qwen2": "QWEN2",
    "small-qwen2-moe": "QWEN2MOE",
    "small-qwen3": "QWEN3",
    "small-qwen3-moe": "QWEN3MOE",
    "small-gemma": "GEMMA",
    "small-gemma2": "GEMMA2",
    "small-gemma3": "GEMMA3",
    "small-phi": "PHI2",
    "small-phi3": "PHI3",
    "small-gpt-neox": "GPTNEOX",
    "small-gpt-oss": "GPT_OSS",
    "small-gpt2": "GPT2",
    "small-starcoder2": "STARCODER2",
    "small-stablelm": "STABLELM",
    "small-granite": "GRANITE",
}
# Of these GGUF has one way or the other.
ALTERNATIVES = {"ffn_gate_exps", "ffn_up_exps", "ffn_gate_up_exps"}
# A dense block of a model with experts: the architecture's table has both.
DENSE = {"ffn_gate", "ffn_up", "ffn_down"}


def overridden(program: str, config: Path) -> set[str]:
    """The names of weights in blocks that the exported options override."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.yaml"
        words = ["--context-length", "16", "--budget", "64MiB", "--pin", "class:parameter=cpu"]
        subprocess.run(
            [program, "plan", str(config), *words, "-o", str(plan)], check=True, capture_output=True
        )
        text = subprocess.run(
            [program, "export", str(plan), "--to", "llama.cpp"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    lists = re.findall(r"\\\.\(([a-z0-9_|]+)\)(?=\\\.)", text)
    return {name for names in lists for name in names.split("|") if not name.isdigit()}


def known(architecture: str) -> set[str]:
    """The names of weights in blocks, without their number: "attn_q"."""
    tensors = gguf.MODEL_TENSORS[getattr(gguf.MODEL_ARCH, architecture)]
    names = [gguf.TENSOR_NAMES[tensor] for tensor in tensors]
    return {name.removeprefix("blk.{bid}.") for name in names if name.startswith("blk.")}


def main() -> int:
    failed = 0
    for model, architecture in ARCHITECTURES.items():
        names = overridden(sys.argv[1], CONFIGS / model / "config.json")
        there = known(architecture)
        unknown = names - there - ALTERNATIVES - DENSE
        if names & ALTERNATIVES and not names & ALTERNATIVES & there:
            unknown |= names & ALTERNATIVES
        missing = "" if names else "nothing is overridden"
        wrong = missing or (f"unknown: {', '.join(sorted(unknown))}" if unknown else "")
        failed += bool(wrong)
        print(f"{model:18} {architecture:12} {wrong or f'{len(names)} names known'}", flush=True)
    print(f"{len(ARCHITECTURES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
