#!/usr/bin/env python3
"""Write compiled_loss.json: what torch.compile makes of a cross entropy by itself.

    python compiled_loss.py

The loss of torchtune's CEWithChunkedOutputLoss.compute_cross_entropy, compiled by Inductor for the
CPU (there is no GPU here; what is saved is decided before code is made for a device). Recorded are
the tensors saved for backward and the buffers that the generated forward and backward allocate.
"""

import pathlib
import re

ROWS, CLASSES = 64, 32000
BUFFER = re.compile(r"= empty_strided_cpu\(\(([^)]*)\), \([^)]*\), torch\.(\w+)\)")


def loss(logits, labels):
    import torch.nn.functional as F

    return F.cross_entropy(logits.float(), labels, ignore_index=-100, reduction="sum")


def buffers(code):
    """[shape, format] of what the generated code allocates."""
    return [[[int(part) for part in shape.split(",") if part.strip()], kind]
            for shape, kind in BUFFER.findall(code)]


def main():
    import counts
    import json_format
    import torch
    from torch._inductor.utils import run_and_get_code

    logits = torch.randn(ROWS, CLASSES, dtype=torch.bfloat16, requires_grad=True)
    labels = torch.randint(0, CLASSES, (ROWS,))
    saved = []

    def pack(tensor):
        saved.append([list(tensor.shape), str(tensor.dtype).removeprefix("torch.")])
        return tensor

    compiled = torch.compile(loss)

    def step():
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            result = compiled(logits, labels)
        result.backward()

    _, (forward, backward) = run_and_get_code(step)
    json_format.write(pathlib.Path(__file__).with_name("compiled_loss.json"), {
        "versions": counts.versions(), "rows": ROWS, "classes": CLASSES, "logits": "bfloat16",
        "saved": saved, "forward_allocates": buffers(forward),
        "backward_allocates": buffers(backward)})


if __name__ == "__main__":
    main()
