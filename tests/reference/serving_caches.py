"""How many tokens transformers' own caches keep, layer by layer, for configurations with windows.

Small models of the families whose layers may have a sliding window, run on the CPU: a prompt, then
tokens until the context is full. `stored` is by layer the number of tokens of which keys lie in the
cache's storage: of a DynamicCache what a sliding layer keeps is a view of the last window - 1
tokens, and its storage holds what the last step made. `bytes` is what the keys' and values'
storages take in float32.

    venv/bin/python tests/reference/serving_caches.py        # serving_caches.json, half a minute
"""

import json
import pathlib
import warnings

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, StaticCache

OUTPUT = pathlib.Path(__file__).with_name("serving_caches.json")
COMMON = dict(vocab_size=100, hidden_size=32, intermediate_size=48, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=128, head_dim=8, pad_token_id=0,
              bos_token_id=1, eos_token_id=2)
USERS = 2
CASES = [
    ("mistral", dict(num_hidden_layers=2, sliding_window=16)),
    ("mistral", dict(num_hidden_layers=2, sliding_window=None)),
    ("mixtral", dict(num_hidden_layers=2, sliding_window=16, num_local_experts=4,
                     num_experts_per_tok=2)),
    ("qwen2", dict(num_hidden_layers=4, sliding_window=16, use_sliding_window=True,
                   max_window_layers=2)),
    ("qwen2", dict(num_hidden_layers=4, sliding_window=16, use_sliding_window=False,
                   max_window_layers=2)),
    ("qwen3", dict(num_hidden_layers=4, sliding_window=16, use_sliding_window=True,
                   max_window_layers=1)),
    ("qwen3", dict(num_hidden_layers=3, sliding_window=16, use_sliding_window=True,
                   layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    ("phi3", dict(num_hidden_layers=2, sliding_window=16)),
    ("gemma3_text", dict(num_hidden_layers=7, sliding_window=16, sliding_window_pattern=6)),
    ("gpt_oss", dict(num_hidden_layers=3, sliding_window=16, num_local_experts=4,
                     num_experts_per_tok=2)),
    ("llama", dict(num_hidden_layers=2)),
]
CONTEXTS = [12, 16, 17, 40]


def new_cache(kind, config, context):
    if kind == "dynamic":
        return DynamicCache(config=config)
    return StaticCache(config=config, max_cache_len=context)


def sizes(cache):
    of_a_token = None
    stored, kept, total = [], [], 0
    for layer in cache.layers:
        keys, values = layer.keys, layer.values
        of_a_token = keys.shape[0] * keys.shape[1] * keys.shape[3] * keys.element_size()
        stored.append(keys.untyped_storage().nbytes() // of_a_token)
        kept.append(keys.shape[2])
        total += keys.untyped_storage().nbytes() + values.untyped_storage().nbytes()
    return stored, kept, total


def measure(kind, type_name, options, context):
    config = AutoConfig.for_model(type_name, **(COMMON | options))
    config._attn_implementation = "eager" if type_name == "gpt_oss" else "sdpa"  # its sinks
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    cache = new_cache(kind, config, context)
    with torch.no_grad():
        for length in (context - 2, 1, 1):
            tokens = torch.ones((USERS, length), dtype=torch.int64)
            model(input_ids=tokens, past_key_values=cache, use_cache=True)
    stored, kept, total = sizes(cache)
    return {"config": {"model_type": type_name} | COMMON | options, "cache": kind, "users": USERS,
            "context_length": context, "layers": [type(one).__name__ for one in cache.layers],
            "stored": stored, "kept": kept, "bytes": total}


def main():
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    rows = [measure(kind, type_name, options, context) for type_name, options in CASES
            for context in CONTEXTS for kind in ("dynamic", "static")]
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    text = ",\n".join("  " + json.dumps(row) for row in rows)
    OUTPUT.write_text('{"schema_version": 1, "versions": %s,\n"cases": [\n%s\n]}\n'
                      % (json.dumps(versions), text))


if __name__ == "__main__":
    main()
