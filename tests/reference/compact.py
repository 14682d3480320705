#!/usr/bin/env python3
"""Write models/compact: the training step of every model of the catalogue, in a short form.

    python compact.py                                 everything
    python compact.py --models swin_t bert-base       some models
    python compact.py --kinds fp32                    one kind: fp32, precision, variant, layout, attention

All under fake CUDA (see fake_cuda.py); one part of the precisions runs on the CPU. See README.md.
"""

import argparse
import collections
import contextlib
import dataclasses
import functools
import gc
import pathlib
import time

import channels_last
import fake_cuda

HERE = pathlib.Path(__file__).parent
SCHEMA_VERSION = 2
KINDS = ("fp32", "precision", "variant", "layout", "attention")
THREE = ("sgd-momentum", "adam", "adamw")
ONE = ("sgd-momentum",)
FULL_FILES_HAVE = {"mlp", "mnist-cnn", "keras-deep-16x16", "unet", "vgg16", "resnet18", "resnet50",
                   "gpt2"}
# In fp32 these get all three optimizers.
OPTIMIZED = {"alexnet", "densenet121", "mobilenet_v2", "inception_v3", "efficientnet_b0",
             "squeezenet1_0", "vit_tiny_patch16_224", "convnext_tiny", "swin_t", "bert-base",
             "gpt2-medium", "llama-3.2-1b-2layers", "t5-small", "lstm-lm", "dcgan-discriminator"}
BATCHES = {"lstm-lm": (2, 20), "dcgan-generator": (2, 128), "dcgan-discriminator": (2, 128),
           "stable-diffusion-unet": (1, 4)}
PRECISE = ("mnist-cnn", "unet", "vgg16", "resnet18", "resnet50", "mobilenet_v2", "densenet121",
           "vit_tiny_patch16_224", "convnext_tiny", "swin_t", "bert-base", "gpt2",
           "llama-3.2-1b-2layers", "t5-small")
HALF = ("resnet18", "gpt2")
ON_THE_CPU = ("mnist-cnn", "unet", "vgg16", "resnet18", "mobilenet_v2", "densenet121",
              "vit_tiny_patch16_224", "convnext_tiny", "bert-base", "gpt2",
              "llama-3.2-1b-2layers")
# Laid out with channels last; the first of them under autocast too.
LAID_OUT_AND_CAST = ("mnist-cnn", "unet", "vgg11", "resnet18", "resnet50", "mobilenet_v2",
                     "densenet121", "efficientnet_b0", "convnext_tiny")
LAID_OUT = (*LAID_OUT_AND_CAST, "googlenet", "inception_v3", "dcgan-generator",
            "dcgan-discriminator")
# With attention written out, in these precisions as well.
WRITTEN_OUT_PRECISELY = ("gpt2-eager", "bert-base-eager", "vit_base_patch16_224-eager",
                         "llama-3.2-1b-2layers-eager")
BLOCKS = {"resnet18": "BasicBlock", "gpt2": "GPT2Block", "vit_tiny_patch16_224": "Block"}


@dataclasses.dataclass(frozen=True)
class Case:
    """One file."""

    name: str
    batch: int
    precision: str = "fp32"
    variant: str | None = None
    optimizers: tuple = ONE
    layout: str = "nchw"

    @property
    def stem(self):
        suffixes = [self.precision] if self.precision != "fp32" else []
        suffixes += [self.variant] if self.variant else []
        suffixes += [self.layout] if self.layout != "nchw" else []
        return "-".join([self.name, f"b{self.batch}", *suffixes])


def batches(name, reference):
    if name in BATCHES:
        return BATCHES[name]
    return (1, 4) if reference.seq else (2, 32)


def cases(kinds):
    import catalogue

    entries = catalogue.cases()
    if "fp32" in kinds:
        for name in entries:
            if name not in FULL_FILES_HAVE:
                for batch in batches(name, entries[name].reference):
                    yield Case(name, batch, optimizers=THREE if name in OPTIMIZED else ONE)
    if "precision" in kinds:
        for name in PRECISE:
            for batch in batches(name, entries[name].reference):
                for precision in ("amp-bf16", "bf16"):
                    yield Case(name, batch, precision, optimizers=THREE)
                if name in HALF:
                    yield Case(name, batch, "amp-fp16", optimizers=THREE)
    if "variant" in kinds:
        for name in BLOCKS:
            batch = batches(name, entries[name].reference)[1]
            for variant in ("accumulate-2", "zero-grad-to-zero", "checkpoint-blocks"):
                yield Case(name, batch, variant=variant, optimizers=("sgd-momentum", "adam"))
            for variant in ("for-loop", "fused"):
                yield Case(name, batch, variant=variant, optimizers=("adam", "adamw"))
    if "layout" in kinds:
        for name in LAID_OUT:
            for batch in batches(name, entries[name].reference):
                yield Case(name, batch, layout="nhwc")
                if name in LAID_OUT_AND_CAST:
                    yield Case(name, batch, "amp-bf16", layout="nhwc")
    if "attention" in kinds:
        for name, entry in catalogue.written_out().items():
            for batch in batches(name, entry.reference):
                yield Case(name, batch, optimizers=("sgd-momentum", "adamw"))
            if name in WRITTEN_OUT_PRECISELY:
                yield from (Case(name, batch, precision) for precision in ("amp-bf16", "bf16"))


# ---- precisions and variants


def dtype_of(precision):
    import torch

    return {"bf16": torch.bfloat16, "fp16": torch.float16}[precision.removeprefix("amp-")]


def under_autocast(reference, dtype, context):
    """The reference with forward and loss inside autocast."""
    def loss(model, inputs, target):
        with context(dtype):
            return reference.loss(model, inputs, target)

    return dataclasses.replace(reference, loss=loss)


def checkpointed(model, block):
    """The model with each module of the class named `block` recomputed in the backward pass."""
    from torch.utils.checkpoint import checkpoint

    for module in model.modules():
        if type(module).__name__ == block:
            module.forward = functools.partial(checkpoint, module.forward, use_reentrant=False,
                                               preserve_rng_state=False)
    return model


def loop_of(variant):
    import step_trace

    return {"accumulate-2": step_trace.Loop(micro_batches=2),
            "zero-grad-to-zero": step_trace.Loop(set_to_none=False),
            "for-loop": step_trace.Loop(optimizer_options={"foreach": False}),
            "fused": step_trace.Loop(optimizer_options={"fused": True}),
            }.get(variant, step_trace.Loop())


def made_for_cuda(case, reference):
    """(model, input, target) in the case's precision, fake; to be called in fake_cuda()."""
    import torch
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    from torch.utils._pytree import tree_map

    dtype = dtype_of(case.precision) if case.precision == "bf16" else None
    with unset_fake_temporarily(), torch.device("meta"):
        model = reference.build(reference.seq).train()
    model = fake_cuda.moved_to_fake(model, dtype)
    with torch.device("cuda"):
        inputs, target = reference.inputs(reference, case.batch, reference.seq)
    if case.layout == "nhwc":
        channels_last.lay_out(model)
        inputs = channels_last.laid_out(inputs)
    if dtype:
        inputs, target = tree_map(lambda t: t.to(dtype) if t.is_floating_point() else t,
                                  (inputs, target))
    return model, inputs, target


# ---- the compact form


def multiset(rows):
    """[[*row, count], ...] in order of first appearance; rows are tuples."""
    return [[*row, count] for row, count in collections.Counter(rows).items()]


def saved_rows(entries):
    """[kind, storage bytes, count, uses] of each storage; uses are nodes with their attributes, in
    order, those of the same name once."""
    rows = collections.Counter()
    for entry in entries:
        uses = dict.fromkeys(f"{u['node']}.{u['attribute']}" for u in entry["saved_by"])
        rows[entry["kind"], entry["storage_bytes"], ", ".join(uses)] += 1
    return [[kind, size, count, uses] for (kind, size, uses), count in rows.items()]


def layer_rows(reference, model, inputs, target):
    """[type, output shape, count] of leaf modules, in order of first call."""
    import saved_tensors

    table = saved_tensors.layer_table(reference, model, inputs, target)
    rows = multiset((row["type"], tuple(row["output_shape"])) for row in table)
    return [[name, list(shape), count] for name, shape, count in rows]


def header(case, entry, model, inputs, target):
    import counts
    import generate
    import saved_tensors

    reference = entry.reference
    parameters = list(model.parameters())
    content = {
        "schema_version": SCHEMA_VERSION,
        "versions": counts.versions(),
        "model": entry.model,
        "source": reference.source,
        "batch": case.batch,
        "inputs": {"input": generate.described(inputs), "target": generate.described(target)},
        "settings": {"mode": "train", "precision": case.precision, "layout": case.layout,
                     "seq": reference.seq, "loss": reference.loss.__name__,
                     "arguments": entry.arguments, "variant": case.variant,
                     "device": "compute capability 8.0"},
        "parameters": sum(p.numel() for p in parameters),
        "parameter_bytes": saved_tensors.element_bytes(parameters),
        "buffer_bytes": saved_tensors.element_bytes(model.buffers()),
        "parameter_shapes": counts.shape_counts(parameters),
    }
    if case.variant is None:
        content["layer_shapes"] = layer_rows(reference, model, inputs, target)
    return content


def saved_keys(reference, made):
    import saved_tensors

    entries, unseen = saved_tensors.collect(reference, *made)
    return {"saved_totals_cuda": saved_tensors.totals(entries),
            "saved_unseen_by_hooks_cuda": unseen, "saved_multiset": saved_rows(entries)}


def step_keys(case, reference, made):
    import step_trace

    traces = {}
    for optimizer in case.optimizers:
        trace = step_trace.run(reference, *made, optimizer, fake_cuda.backward_possible,
                               loop_of(case.variant))
        traces[optimizer] = step_trace.summary(trace)
        for parameter in made[0].parameters():
            parameter.grad = None  # where zero_grad leaves gradients
    return {"step_trace_cuda": traces}


def on_cuda(case, entry):
    reference = entry.reference
    with fake_cuda.fake_cuda():
        made = made_for_cuda(case, reference)
        if case.precision.startswith("amp-"):
            reference = under_autocast(reference, dtype_of(case.precision), fake_cuda.autocast)
        content = header(case, entry, *made)
        if case.variant == "checkpoint-blocks":
            checkpointed(made[0], BLOCKS[case.name])
        elif case.variant is None:
            content.update(saved_keys(reference, made))
        content.update(step_keys(case, reference, made))
    return content


def on_cpu(case, entry):
    """What a forward pass with its loss saves under the CPU's own autocast, in real tensors."""
    import generate
    import saved_tensors
    import torch

    with fake_cuda.no_packed_sequences():
        reference = entry.reference
        made = generate.make(reference, case.batch, reference.seq, "cpu")
        reference = under_autocast(reference, dtype_of(case.precision),
                                   functools.partial(torch.autocast, "cpu"))
        entries, _ = saved_tensors.collect(reference, *made)
    return {"saved_totals_cpu": saved_tensors.totals(entries),
            "saved_multiset_cpu": saved_rows(entries)}


def wants_cpu(case, reference):
    return (case.precision == "amp-bf16" and case.layout == "nchw" and case.name in ON_THE_CPU
            and case.batch == batches(case.name, reference)[0])


def write(case):
    import catalogue
    import json_format

    started = time.monotonic()
    entry = {**catalogue.cases(), **catalogue.written_out()}[case.name]
    content = on_cuda(case, entry)
    gc.collect()
    if wants_cpu(case, entry.reference):
        content.update(on_cpu(case, entry))
    path = HERE / "models" / "compact" / f"{case.stem}.json"
    json_format.write(path, content)
    print(f"{case.stem}: {path.stat().st_size} bytes, {time.monotonic() - started:.1f} s",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", metavar="NAME", help="only these models")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--missing", action="store_true", help="only files that are not there")
    arguments = parser.parse_args()
    fake_cuda.relaunch_with_shim()

    import torch

    torch.set_num_threads(1)
    # Experts ask for it in Python; fake_cuda_shim.cpp answers C++ with the same card.
    torch.cuda.get_device_capability = lambda *_: (8, 0)
    failed = []
    for case in cases(arguments.kinds):
        if arguments.models and case.name not in arguments.models:
            continue
        if arguments.missing and (HERE / "models" / "compact" / f"{case.stem}.json").exists():
            continue
        try:
            write(case)
        except Exception as error:  # say which, go on with the others
            failed.append(f"{case.stem}: {type(error).__name__}: {str(error)[:300]}")
            print("FAILED", failed[-1], flush=True)
    if failed:
        raise SystemExit("\n".join(["failed:", *failed]))


if __name__ == "__main__":
    main()
