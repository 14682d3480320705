"""How large transformers' caches are where some layers have a sliding window.

Tiny models of each family with windows, with weights drawn at random, run on the CPU: a prompt and
then three tokens, until the context is full. `layers` holds, for each layer, the bytes of the
storage that its cached keys lie in after the prompt's pass and after the last token's. A dynamic
sliding layer keeps a view of the last window - 1 tokens; its storage is all that the pass read.

    venv/bin/python tests/reference/serving_windows.py    # serving_windows.json, some seconds
"""

import json
import pathlib
import warnings

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, StaticCache

OUTPUT = pathlib.Path(__file__).with_name("serving_windows.json")
SIZES = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4,
             num_key_value_heads=2, head_dim=16, vocab_size=100, max_position_embeddings=512)
CONFIGS = {
    "mistral": dict(sliding_window=32),
    "mistral without a window": dict(model_type="mistral", sliding_window=None),
    "mixtral": dict(sliding_window=24, num_local_experts=2, num_experts_per_tok=1),
    "gemma3_text": dict(sliding_window=16, layer_types=["sliding_attention", "full_attention"] * 2),
    "gemma3_text by its pattern": dict(model_type="gemma3_text", sliding_window=20,
                                       num_hidden_layers=7),
    "qwen2": dict(use_sliding_window=True, sliding_window=32, max_window_layers=1),
    "qwen2 that does not use its window": dict(model_type="qwen2", use_sliding_window=False,
                                               sliding_window=32, max_window_layers=1),
    "qwen3": dict(use_sliding_window=True, sliding_window=32, max_window_layers=3),
    "phi3": dict(sliding_window=33, pad_token_id=0),
}
CASES = [(cache, context) for cache in ("dynamic", "static") for context in (20, 64)]
USERS = 3


def config_of(name):
    options = SIZES | CONFIGS[name]
    return {"model_type": options.pop("model_type", name), **options,
            "transformers_version": transformers.__version__}


def key_bytes(cache):
    return [layer.keys.untyped_storage().nbytes() for layer in cache.layers]


def measure(name, kind, context):
    written = config_of(name)
    options = {key: value for key, value in written.items() if key != "transformers_version"}
    config = AutoConfig.for_model(**options)
    model = AutoModelForCausalLM.from_config(config).eval()
    cache = DynamicCache(config=config) if kind == "dynamic" else StaticCache(
        config=config, max_cache_len=context)
    with torch.no_grad():
        for length in [context - 3, 1, 1, 1]:
            model(input_ids=torch.zeros((USERS, length), dtype=torch.int64), past_key_values=cache,
                  use_cache=True)
        decode = key_bytes(cache)
        cache = DynamicCache(config=config) if kind == "dynamic" else StaticCache(
            config=config, max_cache_len=context)
        model(input_ids=torch.zeros((USERS, context), dtype=torch.int64), past_key_values=cache,
              use_cache=True)
    return {"name": name, "config": written, "cache": kind, "users": USERS,
            "context_length": context, "prefill": key_bytes(cache), "decode": decode}


def main():
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    rows = [measure(name, *case) for name in CONFIGS for case in CASES]
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    text = ",\n".join("  " + json.dumps(row) for row in rows)
    OUTPUT.write_text('{"schema_version": 1, "versions": %s,\n"cases": [\n%s\n]}\n'
                      % (json.dumps(versions), text))


if __name__ == "__main__":
    main()
