"""What transformers allocates while it serves with eager attention: products around a softmax.

As serving.py, of small configurations that a config.json states: keys repeated, the scores of all
heads, the mask of numbers, the softmax in float32 where the model takes it there. OPT looks at the
values of a static cache's lengths, which fake tensors lack: dynamic ones alone.

    venv/bin/python tests/reference/serving_eager.py      # serving_eager.json, two minutes
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
    AutoConfig, AutoModelForCausalLM)

import serving  # noqa: E402
import step_trace  # noqa: E402

torch.cuda.get_device_capability = lambda *_: (8, 0)  # fake CUDA has no driver that would say

OUTPUT = pathlib.Path(__file__).with_name("serving_eager.json")
LLAMA = dict(model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=128,
             intermediate_size=256, num_hidden_layers=3, num_attention_heads=8,
             num_key_value_heads=2, vocab_size=500, max_position_embeddings=1024)
MISTRAL = LLAMA | dict(model_type="mistral", architectures=["MistralForCausalLM"],
                       sliding_window=40)
GEMMA2 = LLAMA | dict(model_type="gemma2", architectures=["Gemma2ForCausalLM"], head_dim=16,
                      query_pre_attn_scalar=16, sliding_window=40, num_hidden_layers=4)
GPT_OSS = LLAMA | dict(model_type="gpt_oss", architectures=["GptOssForCausalLM"], head_dim=16,
                       intermediate_size=96, sliding_window=40, num_hidden_layers=4,
                       num_local_experts=8, num_experts_per_tok=2)
GPT2 = dict(model_type="gpt2", architectures=["GPT2LMHeadModel"], n_embd=128, n_layer=3, n_head=8,
            vocab_size=500, n_positions=1024)
OPT = dict(model_type="opt", architectures=["OPTForCausalLM"], hidden_size=128, ffn_dim=256,
           num_hidden_layers=3, num_attention_heads=8, vocab_size=500, word_embed_proj_dim=128,
           max_position_embeddings=1024, pad_token_id=1)
NEOX = dict(model_type="gpt_neox", architectures=["GPTNeoXForCausalLM"], hidden_size=128,
            intermediate_size=256, num_hidden_layers=3, num_attention_heads=8, vocab_size=500,
            max_position_embeddings=1024)
# configuration, cache, precision, users, context, tokens of a chunk (the whole prompt: the context)
CASES = [(config, kind, precision, users, context, None)
         for config in (LLAMA, GPT2, OPT)
         for kind in (("dynamic", "static") if config is not OPT else ("dynamic",))
         for precision, users, context in (("fp32", 2, 50), ("bf16", 3, 96), ("bf16", 8, 300))]
CASES += [(LLAMA, "dynamic", "bf16", 3, 96, 32), (LLAMA, "static", "bf16", 3, 96, 32),
          (OPT, "dynamic", "fp32", 3, 96, 32),
          (MISTRAL, "dynamic", "bf16", 4, 200, None), (MISTRAL, "static", "bf16", 4, 200, None),
          (MISTRAL, "dynamic", "fp32", 2, 30, None),
          (GEMMA2, "dynamic", "bf16", 4, 200, None), (GEMMA2, "static", "bf16", 4, 200, None),
          (GPT_OSS, "dynamic", "bf16", 4, 200, None), (GPT_OSS, "static", "bf16", 4, 200, None),
          (NEOX, "dynamic", "bf16", 4, 100, None), (NEOX, "static", "fp32", 4, 100, None)]


def traced(options, kind, precision, users, context, lengths):
    # The configuration's own class takes the keys that a config.json has.
    config = AutoConfig.for_model(**{k: v for k, v in options.items() if k != "architectures"})
    config._attn_implementation = "eager"
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with fake_cuda.fake_cuda():
        model = fake_cuda.moved_to_fake(model, serving.DTYPES[precision])
        trace = step_trace.StorageTrace("cuda")
        trace.observe("[parameters and buffers]", [*model.parameters(), *model.buffers()])
        cache = serving.new_cache(kind, model, context)
        gc.collect()
        gc.disable()
        try:
            with trace, torch.no_grad():
                serving.passes(trace, model, cache, users, lengths)
        finally:
            gc.enable()
    last = trace.peaks[len(lengths) - 1, "pass"]
    return {"bytes": last["bytes"], "rounded_512": last["rounded"], "op": last["op"]}


def measure(case):
    options, kind, precision, users, context, chunk = case
    tokens = chunk or context
    prefill = traced(options, kind, precision, users, context, [tokens] * (context // tokens))
    decode = traced(options, kind, precision, users, context, [context - 3, 1, 1, 1])
    return {"config": options, "cache": kind, "precision": precision, "users": users,
            "context_length": context, "prefill_chunk": chunk, "prefill": prefill,
            "decode": decode}


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
