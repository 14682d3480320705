#!/usr/bin/env python3
"""Write counts.json: parameters, buffers and output shapes of every model of the catalogue.

    python counts.py                  all of them, about two minutes on one core
    python counts.py --models swin_t  print some, write nothing

Models are made on the device "meta", without weights. See README.md for the format.
"""

import argparse
import collections
import json
import math
import pathlib
import platform

HERE = pathlib.Path(__file__).parent
BATCH = 2


def versions():
    import timm
    import torch
    import torchvision
    import transformers

    return {"python": platform.python_version(), "torch": torch.__version__,
            "torchvision": torchvision.__version__, "timm": timm.__version__,
            "transformers": transformers.__version__}


def dtype_name(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def shape_counts(tensors):
    """[[shape, count], ...], sorted."""
    counts = collections.Counter(tuple(t.shape) for t in tensors)
    return [[list(shape), count] for shape, count in sorted(counts.items())]


def buffer_counts(tensors):
    """[[shape, dtype, count], ...], sorted."""
    counts = collections.Counter((tuple(t.shape), dtype_name(t)) for t in tensors)
    return [[list(shape), dtype, count] for (shape, dtype), count in sorted(counts.items())]


def output_shapes(output):
    """Of a model's output: the logits, or each of several."""
    import torch

    if isinstance(output, torch.Tensor):
        return [list(output.shape)]
    if hasattr(output, "keys"):
        output = output.values()
    return [list(t.shape) for t in output if isinstance(t, torch.Tensor) and t.dim() > 0]


def counted(name, entry):
    import fake_cuda
    import torch

    with torch.device("meta"), fake_cuda.no_packed_sequences():
        model = entry.reference.build(entry.reference.seq).train()
        inputs, target = entry.reference.inputs(entry.reference, BATCH, entry.reference.seq)
        with torch.no_grad():
            output, _ = entry.reference.loss(model, inputs, target)
    parameters, buffers = list(model.parameters()), list(model.buffers())
    kept = list(model.state_dict(keep_vars=True).values())
    return {
        "name": name, "model": entry.model, "arguments": entry.arguments,
        "source": entry.reference.source,
        "parameters": sum(p.numel() for p in parameters),
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "tensors": len(parameters),
        "buffer_bytes": sum(math.prod(b.shape) * b.element_size() for b in buffers),
        "batch": BATCH, "seq": entry.reference.seq,
        "input_shape": list((inputs[0] if isinstance(inputs, tuple) else inputs).shape), "output_shapes": output_shapes(output),
        "parameter_shapes": shape_counts(parameters),
        "buffers": buffer_counts(buffers),
        "buffers_in_state_dict": sum(any(b is k for k in kept) for b in buffers),
    }


def rows(names):
    import catalogue

    entries = {**catalogue.ENTRIES, **catalogue.heads_of_bert()}
    for name in names or entries:
        row = counted(name, entries[name])
        print(f"{name}: {row['parameters']} {row['output_shapes']}", flush=True)
        yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", metavar="NAME", help="print these, write nothing")
    arguments = parser.parse_args()

    import torch

    torch.set_num_threads(1)
    counts = list(rows(arguments.models))
    if arguments.models:
        print(json.dumps(counts, indent=1))
        return
    import json_format

    json_format.write(HERE / "counts.json",
                      {"schema_version": 1, "versions": versions(), "models": counts})


if __name__ == "__main__":
    main()
