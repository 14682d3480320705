#!/usr/bin/env python3
"""Write tests/hf/counts.json: the tensors of every configuration under tests/hf, made by transformers
on the device "meta", without weights.

    python hf_counts.py

A row has the number of elements of the parameters and of the buffers (tied ones once), and
`tensors`: [name, shape, count], where numbers in a name stand as N and tensors alike are counted.
`alias` names a tied tensor's other names.
"""

import collections
import json
import re

import torch

import hf_models


def pattern(name):
    return re.sub(r"\d+", "N", name)


def row(folder):
    path = hf_models.HF / folder / "config.json"
    model_class, config = hf_models.configured(path)
    with torch.device("meta"):
        model = model_class(config)
    model.tie_weights()
    names = collections.defaultdict(list)
    tensors = {}
    for name, tensor in model.named_parameters(remove_duplicate=False):
        names[id(tensor)].append(name)
        tensors[id(tensor)] = tensor
    first = collections.Counter((pattern(names[key][0]), tuple(t.shape)) for key, t in tensors.items())
    return {
        "class": model_class.__name__,
        "parameters": sum(t.numel() for t in tensors.values()),
        "trainable": sum(t.numel() for t in tensors.values() if t.requires_grad),
        "tensors": [[name, list(shape), count] for (name, shape), count in sorted(first.items())],
        "alias": {pattern(others[0]): sorted(map(pattern, others[1:]))
                  for others in names.values() if len(others) > 1},
    }


def main():
    import counts
    import json_format

    rows = {}
    for path in sorted(hf_models.HF.glob("*/config.json")):
        rows[path.parent.name] = row(path.parent.name)
        print(path.parent.name, rows[path.parent.name]["parameters"], flush=True)
    json_format.write(hf_models.HF / "counts.json", {"versions": counts.versions(), "models": rows})


if __name__ == "__main__":
    main()
