#!/usr/bin/env python3
"""Compare the traced peak of one training step on the CPU with what the allocator did.

The profiler sees each allocation, also those inside kernels, and needs no dispatch mode; so it
checks both the trace and its one correction (step_trace.engine_sum). Prints, for each model, the
profiler's peak over the start of the step, the trace's, and the number of sums the engine made in
place and out of place. The traced model holds its outputs of the step before, which the profiler
never sees freed: that much more is expected of it, and the temporaries of kernels.
"""

import collections
import sys

import torch
from torch.profiler import ProfilerActivity, profile

import catalogue
import compact
import fake_cuda
import generate
import models
import step_trace

CASES = [("mlp", 2, None), ("mnist-cnn", 2, None), ("resnet18", 2, None), ("unet", 2, None),
         ("gpt2-nodropout", 1, 32), ("squeezenet1_0", 2, None), ("densenet121", 2, None),
         ("googlenet", 2, None), ("mobilenet_v2", 2, None), ("efficientnet_b0", 2, None),
         ("vit_tiny_patch16_224", 2, None), ("convnext_tiny", 2, None), ("swin_t", 2, None),
         ("bert-base", 1, 32), ("t5-small", 1, 32), ("llama-3.2-1b-2layers", 1, 32)]

CHECKPOINTED = [("resnet18", 2, None), ("vit_tiny_patch16_224", 2, None), ("gpt2-nodropout", 1, 32)]


def profiled_step(reference, model, inputs, target):
    """(peak over the start, {operator: sums of gradients}) of the second step."""
    optimizer = step_trace.OPTIMIZERS["sgd"](model.parameters())

    def step():
        output, loss = reference.loss(model, inputs, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return output, loss

    kept = step()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        kept = step()
    del kept
    live = peak = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
    sums = collections.Counter(
        event.name for event in profiler.events()
        if event.name in ("aten::add", "aten::add_") and event.cpu_parent
        and event.cpu_parent.name.startswith("autograd::engine::evaluate_function"))
    return peak, dict(sums)


def verify(name, reference, batch, seq, block):
    made = generate.make(reference, batch, seq or reference.seq, "cpu")
    if block:
        compact.checkpointed(made[0], block)
    peak, sums = profiled_step(reference, *made)
    trace = step_trace.run(reference, *made, "sgd")
    start = next(e[5] for e in trace.events if e[0] == 2)
    traced = collections.Counter(e[2] for e in trace.events
                                 if e[0] == 2 and e[2].startswith("engine"))
    print(f"{name} batch {batch}{', checkpointed' if block else ''}: profiler {peak}, trace "
          f"{step_trace.step_peak(trace, 2)[0] - start}; sums: profiler {sums}, "
          f"trace {dict(traced)}", flush=True)


def main():
    torch.set_num_threads(1)
    references = {name: case.reference for name, case in catalogue.cases().items()}
    references |= models.MODELS
    wanted = sys.argv[1:] or list(references)
    with fake_cuda.no_packed_sequences():
        for cases, blocks in ((CASES, {}), (CHECKPOINTED, compact.BLOCKS)):
            for name, batch, seq in cases:
                if name in wanted:
                    block = blocks.get(name.removesuffix("-nodropout"))
                    verify(name, references[name], batch, seq, block)


if __name__ == "__main__":
    main()
