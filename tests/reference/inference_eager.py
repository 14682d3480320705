#!/usr/bin/env python3
"""The peak of an inference with attention written out, as PyTorch's CUDA path allocates it.

Two passes under no_grad, the output in a variable: the second one's peak. Functions hold their
queries, keys, values and weights in variables while the output projection runs, and transformers'
layers the weights while their feed-forward network does; training does not show that, since
autograd saves them.

    venv/bin/python tests/reference/inference_eager.py      # inference_eager.json, a minute
"""

import gc
import json
import pathlib

import fake_cuda

fake_cuda.relaunch_with_shim()

import torch  # noqa: E402
from torch.utils._pytree import tree_iter  # noqa: E402

import catalogue  # noqa: E402
import compact  # noqa: E402
import hf_models  # noqa: E402
import step_trace  # noqa: E402

OUTPUT = pathlib.Path(__file__).with_name("inference_eager.json")
# models of the catalogue, batch
CATALOGUE = (("vit_base_patch16_224-eager", 1), ("vit_base_patch16_224-eager", 16), ("swin_t", 16))
# folders of tests/hf, class, batch, tokens
CONFIGURATIONS = (
    ("vit-base-in21k", "ViTForImageClassification", 1, None),
    ("vit-base-in21k", "ViTForImageClassification", 16, None),
    ("small-bert", None, 4, 128), ("small-distilbert", None, 4, 128),
    ("small-electra", None, 4, 128), ("small-gpt2", None, 2, 128), ("small-gpt2", None, 2, 16),
    ("small-opt", None, 2, 64), ("small-llama", None, 2, 512), ("small-llama", None, 2, 16),
    ("small-qwen3", None, 2, 512), ("small-gemma2", None, 2, 512), ("small-gpt-neox", None, 2, 512),
    ("whisper-small", None, 2, 128), ("bart-base", "BartForConditionalGeneration", 2, 512))
CACHELESS = ("vit", "swin", "bert", "electra", "distilbert")


def peak(call, model, inputs):
    """{bytes, rounded_512, op} of the second pass."""
    trace = step_trace.StorageTrace("cuda")
    trace.observe("[parameters and buffers]", [*model.parameters(), *model.buffers()])
    trace.observe("[inputs]", inputs)
    gc.collect()
    gc.disable()
    try:
        with trace, torch.no_grad():
            output = None
            for step in (1, 2):
                trace.enter_phase(step, "forward")
                output = call()
            del output
    finally:
        gc.enable()
    last = trace.peaks[2, "forward"]
    return {"bytes": last["bytes"], "rounded_512": last["rounded"], "op": last["op"]}


def of_catalogue(name, batch):
    entry = {**catalogue.cases(), **catalogue.written_out()}[name]
    with fake_cuda.fake_cuda():
        model, inputs, _ = compact.made_for_cuda(compact.Case(name, batch), entry.reference)
        model.eval()
        found = peak(lambda: model(inputs), model, [*tree_iter(inputs)])
    return {"model": entry.model, "batch": batch, **found}


def keywords(kind, inputs, tokens):
    if kind == "vit":
        return {"pixel_values": inputs}
    named = {"input_features" if kind == "whisper" else "input_ids": inputs}
    if kind in ("whisper", "bart"):
        named["decoder_input_ids"] = tokens
    return named


def of_configuration(folder, class_name, batch, seq):
    import dataclasses

    import transformers

    model_class, config = hf_models.configured(hf_models.HF / folder / "config.json")
    model_class = getattr(transformers, class_name) if class_name else model_class
    config._attn_implementation = "eager"
    reference = dataclasses.replace(hf_models.reference(folder, seq or 32),
                                    build=lambda _seq: model_class(config))
    with fake_cuda.fake_cuda():
        model, inputs, tokens = compact.made_for_cuda(compact.Case(folder, batch), reference)
        model.eval()
        given = keywords(config.model_type, inputs, tokens)
        options = {} if config.model_type in CACHELESS else {"use_cache": False}
        found = peak(lambda: model(**given, **options), model, list(given.values()))
    return {"folder": folder, "batch": batch, "seq": seq, **found}


def main():
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    rows = [of_catalogue(*case) for case in CATALOGUE]
    rows += [of_configuration(*case) for case in CONFIGURATIONS]
    import counts

    text = ",\n".join("  " + json.dumps(row) for row in rows)
    OUTPUT.write_text('{"schema_version": 1, "versions": %s,\n"cases": [\n%s\n]}\n'
                      % (json.dumps(counts.versions()), text))


if __name__ == "__main__":
    main()
