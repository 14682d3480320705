"""Writes attention_choices.json: which kernel PyTorch itself takes for attention, on pretended cards.

scaled_dot_product_attention chooses by the device's properties, which fake_cuda_shim.cpp makes up,
and the order of its choices is set once a process: so a process for each compute capability. A case
is one line: [capability, heads, key heads, queries, keys, features, value features, dtype, causal,
dropout, mask, gradient, kernel].
"""

import itertools
import json
import os
import pathlib
import subprocess
import sys

import fake_cuda

CAPABILITIES = ["8.0", "8.6", "9.0", "10.0", "10.3", "12.0"]
CAPABILITY = os.environ.get("STOWAGE_CAPABILITY")
if CAPABILITY:
    major, minor = CAPABILITY.split(".")
    fake_cuda.relaunch_with_shim(f"-DSTOWAGE_FAKE_MAJOR={major}",
                                f"-DSTOWAGE_FAKE_MINOR={minor}")

BATCH = 4
USUAL = dict(heads=8, key_heads=8, queries=64, keys=64, features=64, value_features=64, dtype="bf16",
             causal=True, dropout=0.0, mask=False, gradient=True)


def cases():
    def case(**changes):
        return {**USUAL, **changes}

    for gradient, causal in itertools.product((True, False), (True, False)):
        for features, values in ((8, 8), (12, 12), (64, 32), (80, 80), (120, 128), (128, 128),
                                 (136, 136), (192, 128), (192, 192), (200, 200), (224, 224),
                                 (240, 240), (256, 128), (256, 256), (264, 264)):
            yield case(features=features, value_features=values, gradient=gradient, causal=causal)
        for queries, keys in ((1, 64), (64, 1), (63, 65), (128, 64), (2, 2)):
            yield case(queries=queries, keys=keys, gradient=gradient, causal=causal)
        for dtype in ("fp32", "fp16"):
            yield case(dtype=dtype, gradient=gradient, causal=causal)
        yield case(key_heads=2, gradient=gradient, causal=causal)
        yield case(mask=True, causal=False, gradient=gradient)
    for dropout in (0.1, 0.125, 0.5):
        yield case(dropout=dropout)
        yield case(dropout=dropout, queries=1)
        yield case(dropout=dropout, features=256, value_features=256)


def choose():
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    dtypes = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}

    class Log(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.kernels = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            name = str(function).split(".")[1]
            if "attention" in name:
                self.kernels.append(name.removeprefix("_scaled_dot_product_").split("_")[0])
            return function(*args, **(kwargs or {}))

    def kernel(call):
        def operand(heads, length, features):
            tensor = torch.empty(BATCH, length, heads, features, device="cuda",
                                 dtype=dtypes[call["dtype"]], requires_grad=call["gradient"])
            return tensor.transpose(1, 2)

        q = operand(call["heads"], call["queries"], call["features"])
        k = operand(call["key_heads"], call["keys"], call["features"])
        v = operand(call["key_heads"], call["keys"], call["value_features"])
        mask = None
        if call["mask"]:
            mask = torch.empty(BATCH, 1, call["queries"], call["keys"], device="cuda", dtype=q.dtype)
        with Log() as log:
            torch.nn.functional.scaled_dot_product_attention(
                q, k, v, mask, call["dropout"], call["causal"],
                enable_gqa=call["heads"] != call["key_heads"])
        return log.kernels[0] if log.kernels else "math"

    with fake_cuda.fake_cuda(), fake_cuda.backward_possible():
        for call in cases():
            print(json.dumps([CAPABILITY, *call.values(), kernel(call)]))


def main():
    lines = []
    for capability in CAPABILITIES:
        run = subprocess.run([sys.executable, __file__], check=True, capture_output=True, text=True,
                             env=dict(os.environ, STOWAGE_CAPABILITY=capability))
        lines += run.stdout.splitlines()
    path = pathlib.Path(__file__).with_name("attention_choices.json")
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    choose() if CAPABILITY else main()
