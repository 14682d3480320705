"""What transformers allocates while it serves: prefill and decode with a cache of keys and values.

Small models of configurations that ours have too, on fake CUDA tensors (fake_cuda.py), one pass of
a prompt and one token after another until the context is full. `prefill` and `decode` are the peaks
of the prompt's pass and of the last token's, every storage counted (step_trace.py).

    venv/bin/python tests/reference/serving.py            # serving.json, half a minute
"""

import gc
import json
import pathlib
import warnings

import fake_cuda

fake_cuda.relaunch_with_shim()

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import (  # noqa: E402
    DynamicCache, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig,
    MistralForCausalLM, StaticCache)

import step_trace  # noqa: E402

OUTPUT = pathlib.Path(__file__).with_name("serving.json")
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
LLAMA = dict(hidden_size=256, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=2,
             intermediate_size=512, vocab_size=1000, max_position_embeddings=8192, head_dim=32)
LLAMA_ARGUMENTS = dict(hidden=256, layers=2, heads=8, kv_heads=2, head=32, inner=512, vocab=1000)
MODELS = {
    "llama-3-8b": (LlamaForCausalLM, LlamaConfig, LLAMA, LLAMA_ARGUMENTS),
    "mistral-7b": (MistralForCausalLM, MistralConfig, LLAMA | dict(sliding_window=64),
                   LLAMA_ARGUMENTS | dict(window=64)),
    "gpt2": (GPT2LMHeadModel, GPT2Config,
             dict(n_embd=256, n_layer=2, n_head=8, vocab_size=1000, n_positions=1024),
             dict(hidden=256, layers=2, heads=8, vocab=1000, positions=1024)),
}
# model, cache, precision, users, context, tokens of a chunk (the whole prompt: the context)
CASES = [
    ("llama-3-8b", "dynamic", "bf16", 3, 96, None), ("llama-3-8b", "static", "bf16", 3, 96, None),
    ("llama-3-8b", "dynamic", "fp32", 2, 50, None), ("llama-3-8b", "static", "fp32", 2, 50, None),
    ("llama-3-8b", "dynamic", "bf16", 3, 96, 32), ("llama-3-8b", "static", "bf16", 3, 96, 32),
    ("llama-3-8b", "dynamic", "bf16", 16, 600, None),
    ("llama-3-8b", "static", "bf16", 16, 600, None),
    ("gpt2", "dynamic", "fp32", 4, 100, None), ("gpt2", "static", "fp32", 4, 100, None),
    ("gpt2", "dynamic", "bf16", 8, 512, None), ("gpt2", "static", "bf16", 8, 512, None),
    ("mistral-7b", "dynamic", "bf16", 4, 200, None),
    ("mistral-7b", "static", "bf16", 4, 200, None),
    ("mistral-7b", "dynamic", "bf16", 4, 48, None),
]


def new_cache(kind, model, context):
    if kind == "dynamic":
        return DynamicCache(config=model.config)
    return StaticCache(config=model.config, max_cache_len=context)


def passes(trace, model, cache, users, lengths):
    """The output of a pass is kept until the next one's has taken its place."""
    output = None
    for number, length in enumerate(lengths):
        trace.enter_phase(number, "pass")
        tokens = torch.empty((users, length), dtype=torch.int64, device="cuda")
        result = model(input_ids=tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
        output = result.logits
        del result, tokens
    trace.settle()
    return output


def traced(model_name, kind, precision, users, context, lengths):
    model_class, config_class, options, _ = MODELS[model_name]
    config = config_class(**options)
    config._attn_implementation = "sdpa"
    with torch.device("meta"):
        model = model_class(config).eval()
    with fake_cuda.fake_cuda():
        model = fake_cuda.moved_to_fake(model, DTYPES[precision])
        trace = step_trace.StorageTrace("cuda")
        trace.observe("[parameters and buffers]", [*model.parameters(), *model.buffers()])
        gc.collect()
        gc.disable()
        try:
            with trace, torch.no_grad():
                passes(trace, model, new_cache(kind, model, context), users, lengths)
        finally:
            gc.enable()
    last = trace.peaks[len(lengths) - 1, "pass"]
    return {"bytes": last["bytes"], "rounded_512": last["rounded"], "op": last["op"]}


def measure(case):
    model, kind, precision, users, context, chunk = case
    tokens = chunk or context
    prefill = traced(model, kind, precision, users, context, [tokens] * (context // tokens))
    decode = traced(model, kind, precision, users, context, [context - 3, 1, 1, 1])
    return {"model": model, "arguments": MODELS[model][3], "cache": kind, "precision": precision,
            "users": users, "context_length": context, "prefill_chunk": chunk,
            "prefill": prefill, "decode": decode}


def main():
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    rows = [measure(case) for case in CASES]
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    text = ",\n".join("  " + json.dumps(row) for row in rows)
    OUTPUT.write_text('{"schema_version": 1, "versions": %s,\n"cases": [\n%s\n]}\n'
                      % (json.dumps(versions), text))


if __name__ == "__main__":
    main()
