#!/usr/bin/env python3
"""Write models/fine_tuning: training steps as people fine-tune, in the form of models/compact.

    python fine_tuning.py                      everything, about two minutes
    python fine_tuning.py --cases gpt2-b1-lora-c_attn

Adapters are peft's own. Of bitsandbytes and torchao the layers' Python code runs; what happens
within their CUDA operators is written out here (quantised.py), since fake tensors see only the
results of an operator. All under fake CUDA (see fake_cuda.py).
"""

import argparse
import contextlib
import dataclasses
import functools
import pathlib
import time

import fake_cuda

HERE = pathlib.Path(__file__).parent
FEW_WORDS = "llama-3.2-1b-few-words"
BLOCKS = {"gpt2": "GPT2Block", "llama-3.2-1b-2layers": "LlamaDecoderLayer",
          FEW_WORDS: "LlamaDecoderLayer"}


@dataclasses.dataclass(frozen=True)
class Case:
    """One file. `lora` is peft's LoraConfig, `ours` the same as Stowage's settings."""

    stem: str
    name: str
    ours: dict
    lora: dict | None = None
    precision: str = "fp32"
    batch: int = 1
    checkpoint: bool = False
    kept: tuple = ()
    base: str | None = None
    double_quant: bool = True
    chunks: int = 0
    offload: dict | None = None
    in_backward: bool = False
    packing: bool = False
    optimizers: tuple = ("sgd-momentum", "adamw")


LLAMA = "llama-3.2-1b-2layers"
QV = {"r": 16, "lora_alpha": 32, "target_modules": ["q_proj", "v_proj"]}
OUR_QV = "r=16,alpha=32,targets=q_proj+v_proj"
ALL = {"r": 8, "lora_alpha": 8, "target_modules": "all-linear"}
OUR_ALL = "r=8,alpha=8,targets=all-linear"
ATTENTION = ("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention")


def cases():
    yield Case("gpt2-b1-lora-c_attn", "gpt2", {"lora": "r=8,alpha=16,targets=c_attn"},
               {"r": 8, "lora_alpha": 16, "target_modules": ["c_attn"]})
    yield Case("gpt2-b1-bf16-lora-c_attn-dropout", "gpt2",
               {"lora": "r=8,alpha=16,dropout=0.1,targets=c_attn"},
               {"r": 8, "lora_alpha": 16, "lora_dropout": 0.1, "target_modules": ["c_attn"]},
               "bf16")
    yield Case("gpt2-b4-lora-c_attn-checkpoint", "gpt2",
               {"lora": "r=8,alpha=16,targets=c_attn", "checkpoint": "all"},
               {"r": 8, "lora_alpha": 16, "target_modules": ["c_attn"]}, batch=4, checkpoint=True)
    for precision in ("fp32", "bf16", "amp-bf16"):
        between = "" if precision == "fp32" else f"-{precision}"
        yield Case(f"{LLAMA}-b1{between}-lora-qv", LLAMA, {"lora": OUR_QV}, QV, precision)
        yield Case(f"{LLAMA}-b1{between}-lora-qv-dropout", LLAMA,
                   {"lora": OUR_QV + ",dropout=0.05"}, {**QV, "lora_dropout": 0.05}, precision)
    yield Case(f"{LLAMA}-b1-bf16-lora-qv-own-type", LLAMA, {"lora": OUR_QV + ",dtype=bf16"},
               {**QV, "autocast_adapter_dtype": False}, "bf16")
    yield Case(f"{LLAMA}-b1-bf16-lora-all", LLAMA, {"lora": OUR_ALL}, ALL, "bf16")
    yield Case(f"{LLAMA}-b4-bf16-lora-qv-checkpoint", LLAMA,
               {"lora": OUR_QV, "checkpoint": "all"}, QV, "bf16", 4, checkpoint=True)
    yield Case(f"{LLAMA}-b4-bf16-lora-all-dropout-checkpoint", LLAMA,
               {"lora": OUR_ALL + ",dropout=0.05", "checkpoint": "all"},
               {**ALL, "lora_dropout": 0.05}, "bf16", 4, checkpoint=True)
    yield Case(f"{LLAMA}-b4-bf16-checkpoint", LLAMA, {"checkpoint": "all"}, None, "bf16", 4,
               checkpoint=True)
    yield Case(f"{LLAMA}-b4-bf16-checkpoint-selective-attention", LLAMA,
               {"checkpoint": "selective=attention"}, None, "bf16", 4, checkpoint=True,
               kept=ATTENTION)
    yield Case(f"{LLAMA}-b4-bf16-checkpoint-selective-both", LLAMA,
               {"checkpoint": "selective=attention+matmul"}, None, "bf16", 4, checkpoint=True,
               kept=(*ATTENTION, "mm"))
    yield Case("gpt2-b1-lora-wte-c_attn", "gpt2", {"lora": "r=8,alpha=16,targets=wte+c_attn"},
               {"r": 8, "lora_alpha": 16, "target_modules": ["wte", "c_attn"]})
    yield Case(f"{LLAMA}-b1-bf16-lora-embed_tokens-dropout", LLAMA,
               {"lora": "r=8,alpha=8,targets=embed_tokens+q_proj,dropout=0.05"},
               {"r": 8, "lora_alpha": 8, "target_modules": ["embed_tokens", "q_proj"],
                "lora_dropout": 0.05}, "bf16")
    for base in ("nf4", "int8", "fp8"):
        yield Case(f"{LLAMA}-b1-bf16-{base}-lora-qv", LLAMA, {"lora": OUR_QV, "base": base}, QV,
                   "bf16", base=base)
    for base in ("int8", "fp8"):
        yield Case(f"{LLAMA}-b4-bf16-{base}-lora-all-checkpoint", LLAMA,
                   {"lora": OUR_ALL, "base": base, "checkpoint": "all"}, ALL, "bf16", 4,
                   checkpoint=True, base=base)
    yield Case(f"{LLAMA}-b1-fp32-nf4-once-lora-all", LLAMA,
               {"lora": OUR_ALL, "base": "nf4,double_quant=false"}, ALL, base="nf4",
               double_quant=False)
    yield Case(f"{LLAMA}-b4-bf16-nf4-lora-qv-dropout-checkpoint", LLAMA,
               {"lora": OUR_QV + ",dropout=0.05", "base": "nf4", "checkpoint": "all"},
               {**QV, "lora_dropout": 0.05}, "bf16", 4, checkpoint=True, base="nf4")


def dora_cases():
    dora, ours = {**QV, "use_dora": True}, OUR_QV + ",use_dora=true"
    for precision in ("fp32", "bf16", "amp-bf16"):
        between = "" if precision == "fp32" else f"-{precision}"
        yield Case(f"{LLAMA}-b1{between}-dora-qv", LLAMA, {"lora": ours}, dora, precision)
        yield Case(f"{LLAMA}-b1{between}-dora-qv-dropout", LLAMA, {"lora": ours + ",dropout=0.05"},
                   {**dora, "lora_dropout": 0.05}, precision)
    yield Case(f"{LLAMA}-b1-bf16-dora-qv-own-type", LLAMA, {"lora": ours + ",dtype=bf16"},
               {**dora, "autocast_adapter_dtype": False}, "bf16")
    yield Case(f"{LLAMA}-b4-bf16-dora-all-checkpoint", LLAMA,
               {"lora": OUR_ALL + ",use_dora=true", "checkpoint": "all"},
               {**ALL, "use_dora": True}, "bf16", 4, checkpoint=True)
    # In fp32 peft makes a Parameter of GPT-2's transposed weight, which asks for a gradient.
    yield Case("gpt2-b1-bf16-dora-c_attn", "gpt2",
               {"lora": "r=8,alpha=16,targets=c_attn,use_dora=true"},
               {"r": 8, "lora_alpha": 16, "target_modules": ["c_attn"], "use_dora": True}, "bf16")
    yield Case("gpt2-b1-bf16-dora-c_attn-dropout", "gpt2",
               {"lora": "r=8,alpha=16,dropout=0.1,targets=c_attn,use_dora=true"},
               {"r": 8, "lora_alpha": 16, "lora_dropout": 0.1, "target_modules": ["c_attn"],
                "use_dora": True}, "bf16")
    yield Case(f"{LLAMA}-b1-bf16-nf4-dora-qv", LLAMA, {"lora": ours, "base": "nf4"}, dora, "bf16",
               base="nf4")
    yield Case(f"{LLAMA}-b4-bf16-nf4-dora-all-dropout-checkpoint", LLAMA,
               {"lora": OUR_ALL + ",use_dora=true,dropout=0.05", "base": "nf4",
                "checkpoint": "all"},
               {**ALL, "use_dora": True, "lora_dropout": 0.05}, "bf16", 4, checkpoint=True,
               base="nf4")
    yield Case(f"{LLAMA}-b1-bf16-int8-dora-qv", LLAMA, {"lora": ours, "base": "int8"}, dora, "bf16",
               base="int8")


def few_words_cases():
    """Without a large output layer the peaks lie where adapters and bases are computed."""
    for stem, ours, dora in (("lora", "", False), ("dora", ",use_dora=true", True)):
        theirs = {**ALL, "use_dora": dora}
        for base in ("nf4", "int8"):
            yield Case(f"{FEW_WORDS}-b1-bf16-{base}-{stem}-all", FEW_WORDS,
                       {"lora": OUR_ALL + ours, "base": base}, theirs, "bf16", base=base)
        yield Case(f"{FEW_WORDS}-b4-bf16-nf4-{stem}-all-dropout-checkpoint", FEW_WORDS,
                   {"lora": OUR_ALL + ours + ",dropout=0.05", "base": "nf4", "checkpoint": "all"},
                   {**theirs, "lora_dropout": 0.05}, "bf16", 4, checkpoint=True, base="nf4")
    dora, ours = {**ALL, "use_dora": True}, OUR_ALL + ",use_dora=true"
    for precision in ("fp32", "bf16", "amp-bf16"):
        between = "" if precision == "fp32" else f"-{precision}"
        yield Case(f"{FEW_WORDS}-b1{between}-dora-all", FEW_WORDS, {"lora": ours}, dora, precision)
        yield Case(f"{FEW_WORDS}-b1{between}-dora-all-dropout", FEW_WORDS,
                   {"lora": ours + ",dropout=0.05"}, {**dora, "lora_dropout": 0.05}, precision)
    yield Case(f"{FEW_WORDS}-b4-bf16-dora-all-checkpoint", FEW_WORDS,
               {"lora": ours, "checkpoint": "all"}, dora, "bf16", 4, checkpoint=True)
    yield Case(f"{FEW_WORDS}-b1-bf16-lora-ranks", FEW_WORDS,
               {"lora": OUR_ALL + ",rank_pattern=q_proj:32+down_proj:4"},
               {**ALL, "rank_pattern": {"q_proj": 32, "down_proj": 4}}, "bf16")


def packing_cases():
    """Of one sample: position ids of each would make rotary's tables as many times as large."""
    for precision in ("fp32", "bf16"):
        between = "" if precision == "fp32" else f"-{precision}"
        yield Case(f"{LLAMA}-b1{between}-packing", LLAMA, {}, None, precision, packing=True)
    yield Case(f"{LLAMA}-b1-bf16-packing-lora-qv", LLAMA, {"lora": OUR_QV}, QV, "bf16",
               packing=True)


def memory_saving_cases():
    chunks = {"chunked_loss": "8"}
    yield Case(f"{LLAMA}-b4-bf16-chunks", LLAMA, chunks, None, "bf16", 4, chunks=8)
    yield Case(f"{LLAMA}-b4-bf16-chunks-3-lora-qv", LLAMA,
               {"lora": OUR_QV, "chunked_loss": "3"}, QV, "bf16", 4, chunks=3)
    yield Case(f"{LLAMA}-b4-bf16-chunks-checkpoint", LLAMA,
               {"chunked_loss": "8", "checkpoint": "all"}, None, "bf16", 4, checkpoint=True,
               chunks=8)
    yield Case(f"{FEW_WORDS}-b4-bf16-chunks-3-lora-all-checkpoint", FEW_WORDS,
               {"chunked_loss": "3", "checkpoint": "all", "lora": OUR_ALL}, ALL, "bf16", 4,
               checkpoint=True, chunks=3)
    yield Case(f"{LLAMA}-b1-bf16-in-backward", LLAMA, {"optimizer_in_backward": "true"}, None,
               "bf16", in_backward=True)
    yield Case("gpt2-b1-in-backward", "gpt2", {"optimizer_in_backward": "true"}, None,
               in_backward=True)


def held_offloading_cases():
    yield Case(f"{LLAMA}-b4-bf16-offload-checkpoint", LLAMA,
               {"checkpoint": "all", "offload_activations": "min_bytes=512"}, None, "bf16", 4,
               checkpoint=True, offload={"min_offload_size": 512})


def offloading_cases():
    """Only where --cases names them: ours are up to 0.7 percent off, so that no test holds them."""
    yield Case(f"{LLAMA}-b4-bf16-offload", LLAMA, {"offload_activations": "min_bytes=512"}, None,
               "bf16", 4, offload={"min_offload_size": 512})
    yield Case(f"{LLAMA}-b4-bf16-offload-no-streams", LLAMA,
               {"offload_activations": "min_bytes=512,streams=false"}, None, "bf16", 4,
               offload={"min_offload_size": 512, "use_streams": False})
    yield Case(f"{LLAMA}-b4-bf16-offload-checkpoint-lora-all", LLAMA,
               {"checkpoint": "all", "offload_activations": "min_bytes=512,stash=2",
                "lora": OUR_ALL}, ALL, "bf16", 4, checkpoint=True,
               offload={"min_offload_size": 512, "max_fwd_stash_size": 2})


def few_words():
    import catalogue

    config = {**catalogue.LLAMA["llama-3.2-1b"], "num_hidden_layers": 2, "vocab_size": 512}
    return catalogue.Entry("llama-3.2-1b", catalogue.hugging_face("LlamaForCausalLM", **config),
                           {"layers": 2, "vocab": 512})


def with_adapters(model, lora):
    import peft

    options = dict(lora)
    autocast = options.pop("autocast_adapter_dtype", True)
    own = next(model.parameters()).dtype
    model = peft.get_peft_model(model, peft.LoraConfig(**options),
                                autocast_adapter_dtype=autocast).base_model.model
    if not autocast:  # what peft does by itself on any device but "meta"
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.data = parameter.data.to(own)
    return model


def selective(names):
    """The context function of a checkpoint that keeps the results of these operators."""
    import torch
    from torch.utils.checkpoint import create_selective_checkpoint_contexts

    operators = [getattr(torch.ops.aten, name).default for name in names]
    return functools.partial(create_selective_checkpoint_contexts, operators)


def checkpointed(model, case):
    from torch.utils.checkpoint import checkpoint

    options = {"context_fn": selective(case.kept)} if case.kept else {}
    for module in model.modules():
        if type(module).__name__ == BLOCKS[case.name]:
            module.forward = functools.partial(checkpoint, module.forward, use_reentrant=False,
                                               preserve_rng_state=False, **options)
    return model


def made_for_cuda(case, reference):
    """(model, input, target), fake; to be called in fake_cuda()."""
    import compact
    import quantised
    import torch
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily(), torch.device("meta"):
        model = reference.build(reference.seq).train()
        if case.precision == "bf16":
            model = model.to(compact.dtype_of("bf16"))
        if case.lora:
            model = with_adapters(model, case.lora)
    model = fake_cuda.moved_to_fake(model)
    if case.base:
        quantised.quantise(model, case.base, case.double_quant)
    with torch.device("cuda"):
        inputs, target = reference.inputs(reference, case.batch, reference.seq)
    return model, inputs, target


def counted_parameters(model):
    """(all, trained), as peft's print_trainable_parameters counts."""
    counts = [0, 0]
    for parameter in model.parameters():
        count = getattr(parameter, "stands_for", parameter.numel())
        counts[0] += count
        counts[1] += count if parameter.requires_grad else 0
    return counts


def versions():
    import importlib.metadata

    import counts

    others = ("peft", "bitsandbytes", "torchao", "torchtune", "trl")
    return {**counts.versions(), **{name: importlib.metadata.version(name) for name in others}}


def header(case, entry, model, inputs, target):
    import compact
    import generate
    import saved_tensors

    everything, trained = counted_parameters(model)
    return {
        "schema_version": compact.SCHEMA_VERSION,
        "versions": versions(),
        "model": entry.model,
        "source": entry.reference.source,
        "batch": case.batch,
        "inputs": {"input": generate.described(inputs), "target": generate.described(target)},
        "settings": {"mode": "train", "precision": case.precision, "layout": "nchw",
                     "seq": entry.reference.seq, "loss": entry.reference.loss.__name__,
                     "arguments": {**entry.arguments, **({"packing": True} if case.packing else {})},
                     "variant": None, "fine_tuning": case.ours,
                     "device": "compute capability 8.0"},
        "parameters": everything,
        "trained_parameters": trained,
        "parameter_bytes": saved_tensors.element_bytes(list(model.parameters())),
        "buffer_bytes": saved_tensors.element_bytes(model.buffers()),
    }


def every_case():
    return [*cases(), *dora_cases(), *few_words_cases(), *packing_cases(), *memory_saving_cases(),
            *held_offloading_cases(), *offloading_cases()]


def entry_of(case):
    import catalogue

    return few_words() if case.name == FEW_WORDS else catalogue.cases()[case.name]


def run_of(case, reference, made, optimizer, trace_class=None):
    """The trace of a step in the loop that the case has."""
    import memory_savers
    import step_trace

    backward = fake_cuda.backward_possible
    if case.offload is not None:
        offloading = memory_savers.Offloading(made[0], **case.offload)
        reference = offloading.around(reference)
        backward = functools.partial(offloading.backward, fake_cuda.backward_possible)
    loop = step_trace.Loop(in_backward=case.in_backward)
    return step_trace.run(reference, *made, optimizer, backward, loop,
                          trace_class or step_trace.StorageTrace)


@contextlib.contextmanager
def prepared(case, reference):
    """The reference in the case's loss and precision, and its model and inputs, under fake CUDA."""
    import compact
    import memory_savers
    import quantised

    packing = fake_cuda.packed_sequences() if case.packing else contextlib.nullcontext()
    with fake_cuda.fake_cuda(), quantised.operators_written_out(), packing:
        made = made_for_cuda(case, reference)
        if case.precision.startswith("amp-"):
            reference = compact.under_autocast(reference, compact.dtype_of(case.precision),
                                               fake_cuda.autocast)
        if case.chunks:
            reference = memory_savers.in_chunks(reference, case.chunks)
        yield reference, made


def measured(case, entry):
    import compact
    import step_trace

    with prepared(case, entry.reference) as (reference, made):
        content = header(case, entry, *made)
        if not case.checkpoint and case.offload is None:
            content.update(compact.saved_keys(reference, made))
        elif case.checkpoint:
            checkpointed(made[0], case)
        content["step_trace_cuda"] = {
            optimizer: step_trace.summary(run_of(case, reference, made, optimizer))
            for optimizer in case.optimizers}
    return content


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", metavar="STEM", help="only these files")
    arguments = parser.parse_args()
    fake_cuda.relaunch_with_shim()

    import json_format
    import torch

    torch.set_num_threads(1)
    folder = HERE / "models" / "fine_tuning"
    folder.mkdir(exist_ok=True)
    failed = []
    unheld = {case.stem for case in offloading_cases()}
    for case in every_case():
        if case.stem not in (arguments.cases or [case.stem]):
            continue
        if not arguments.cases and case.stem in unheld:
            continue
        started = time.monotonic()
        try:
            content = measured(case, entry_of(case))
        except Exception as error:  # say which, go on with the others
            failed.append(f"{case.stem}: {type(error).__name__}: {str(error)[:500]}")
            print("FAILED", failed[-1], flush=True)
            continue
        path = folder / f"{case.stem}.json"
        json_format.write(path, content)
        print(f"{case.stem}: {path.stat().st_size} bytes, {time.monotonic() - started:.1f} s",
              flush=True)
    if failed:
        raise SystemExit("\n".join(["failed:", *failed]))


if __name__ == "__main__":
    main()
