#!/usr/bin/env python3
"""Write tests/reference: what PyTorch itself says about the reference models.

    python generate.py                       everything
    python generate.py --models vgg16 unet   some models
    python generate.py --only operators      the gradient cases of the operators

See README.md for the formats.
"""

import argparse
import contextlib
import gc
import pathlib
import platform
import time

import fake_cuda

HERE = pathlib.Path(__file__).parent
SCHEMA_VERSION = 1
SMALL_BATCHES = (2, 4)
TRACED = {"mnist-cnn": 2, "resnet18": 2, "gpt2-nodropout": 1}
# Sizes that people train with; too large for a CPU, so only the CUDA keys are there.
CUDA_ONLY = [("mlp", 64, None), ("mnist-cnn", 128, None), ("vgg16", 64, None),
             ("resnet18", 64, None), ("resnet50", 32, None), ("unet", 16, None),
             ("gpt2", 1, 1024), ("gpt2", 4, 1024), ("gpt2-nodropout", 1, 1024),
             ("gpt2-nodropout", 4, 1024), ("keras-deep-16x16", 256, None)]


def versions():
    import torch
    import torchvision
    import transformers

    return {"python": platform.python_version(), "torch": torch.__version__,
            "torchvision": torchvision.__version__, "transformers": transformers.__version__}


def described(tensor):
    if isinstance(tensor, tuple):
        return [described(each) for each in tensor]
    return {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}


def make(reference, batch, seq, device):
    """(model, input, target) on the device, the model in training mode."""
    import torch

    torch.manual_seed(20260101)
    with torch.device(device):
        model = reference.build(seq).train()
        inputs, target = reference.inputs(reference, batch, seq)
    return model, inputs, target


def header(name, reference, batch, seq, model, inputs, target):
    """The part of a file that holds for every device."""
    import saved_tensors

    parameters = dict(model.named_parameters())
    count = sum(p.numel() for p in parameters.values())
    if reference.parameters is not None and count != reference.parameters:
        raise AssertionError(f"{name}: {count} parameters, expected {reference.parameters}")
    return {
        "schema_version": SCHEMA_VERSION,
        "versions": versions(),
        "model": name,
        "source": reference.source,
        "batch": batch,
        "inputs": {"input": described(inputs), "target": described(target)},
        "settings": {"mode": "train", "precision": "fp32", "layout": "nchw", "seq": seq,
                     "loss": reference.loss.__name__},
        "parameters": count,
        "parameter_bytes": saved_tensors.element_bytes(parameters.values()),
        "buffer_bytes": saved_tensors.element_bytes(model.buffers()),
        "parameter_tensors": [{"name": n, "shape": list(p.shape)} for n, p in parameters.items()],
        "layers": saved_tensors.layer_table(reference, model, inputs, target),
    }


def saved_keys(reference, device, made):
    import saved_tensors

    entries, unseen = saved_tensors.collect(reference, *made)
    suffix = "_cuda" if device == "cuda" else ""
    return {f"saved_totals{suffix}": saved_tensors.totals(entries),
            f"saved_unseen_by_hooks{suffix}": unseen, f"saved{suffix}": entries}


def trace_keys(reference, device, made, trace_path):
    """{"step_trace_<device>": {optimizer: figures}}; also writes Adam's readable trace."""
    import json_format
    import step_trace

    context = fake_cuda.backward_possible if device == "cuda" else contextlib.nullcontext
    result = {}
    for optimizer in step_trace.OPTIMIZERS:
        trace = step_trace.run(reference, *made, optimizer, context)
        result[optimizer] = step_trace.summary(trace)
        if trace_path and optimizer == "adam":
            json_format.write(trace_path, {
                "columns": ["step", "phase", "op", "allocated", "freed", "live"],
                "optimizer": optimizer, "device": device, "events": trace.events})
    return {f"step_trace_{device}": result}


def on_device(device):
    return fake_cuda.fake_cuda() if device == "cuda" else contextlib.nullcontext()


def write_model(name, batch, seq, devices):
    """Write models/<name>[-s<seq>]-b<batch>.json."""
    import json_format
    import models

    reference = models.MODELS[name]
    other_seq = seq is not None and seq != reference.seq
    seq = seq or reference.seq
    stem = f"{name}-s{seq}-b{batch}" if other_seq else f"{name}-b{batch}"
    content = {}
    for device in devices:
        started = time.monotonic()
        trace_path = None
        if TRACED.get(name) == batch and not other_seq:
            trace_path = HERE / "traces" / f"{stem}-{device}.json"
        with on_device(device):
            made = make(reference, batch, seq, device)
            if not content:
                content.update(header(name, reference, batch, seq, *made))
            content.update(saved_keys(reference, device, made))
            content.update(trace_keys(reference, device, made, trace_path))
            del made
        gc.collect()
        print(f"{stem} {device}: {time.monotonic() - started:.1f} s", flush=True)
    json_format.write(HERE / "models" / f"{stem}.json", content)


def cases(names, sizes):
    """(model, batch, seq, devices) of everything to write."""
    import models

    for name in names if "small" in sizes else ():
        batches = (1, 2) if models.MODELS[name].seq else SMALL_BATCHES
        for batch in batches:
            yield name, batch, None, ("cuda", "cpu")
    for name, batch, seq in CUDA_ONLY if "large" in sizes else ():
        if name in names:
            yield name, batch, seq, ("cuda",)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", metavar="NAME", help="only these models")
    parser.add_argument("--only", choices=("models", "operators", "kernels"), help="only this part")
    parser.add_argument("--sizes", nargs="+", choices=("small", "large"),
                        default=["small", "large"],
                        help="small batches on both devices, large ones on fake CUDA only")
    parser.add_argument("--devices", nargs="+", choices=("cuda", "cpu"), default=["cuda", "cpu"],
                        help="leave a device's keys out (for a quick look)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default 2)")
    arguments = parser.parse_args()
    fake_cuda.relaunch_with_shim()

    import torch

    torch.set_num_threads(arguments.threads)
    if arguments.only not in ("operators", "kernels"):
        import models

        names = arguments.models or list(models.MODELS)
        for name, batch, seq, devices in cases(names, arguments.sizes):
            devices = [d for d in devices if d in arguments.devices]
            if devices:
                write_model(name, batch, seq, devices)
    if arguments.only not in ("models", "kernels") and not arguments.models:
        import operators

        operators.write(HERE / "operators.json")
    if arguments.only not in ("models", "operators") and not arguments.models:
        import kernels

        kernels.write(HERE / "kernels")


if __name__ == "__main__":
    main()
