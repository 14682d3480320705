"""What transformers allocates while it serves an encoder-decoder: T5, BART and Whisper.

Small models on fake CUDA tensors (fake_cuda.py), as generate() runs them: the encoder once, then
the decoder a token at a time with an EncoderDecoderCache until the context is full. `prefill` is
the peak of the encoder and of the decoder's first step, `decode` that of the last token, every
storage counted (step_trace.py). `traced` is what the keys' and values' storages take in the end, of
the self-attention and of the cross-attention, and `generated` the same of generate() itself, run
on the CPU. A static cache is run there alone: its lengths are tensors, whose values BART looks at.

    venv/bin/python tests/reference/serving_encoders.py    # serving_encoders.json, half a minute
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
    BartConfig, BartForConditionalGeneration, DynamicCache, EncoderDecoderCache,
    GenerationMixin, T5Config, T5ForConditionalGeneration, WhisperConfig, WhisperForConditionalGeneration)
from transformers.modeling_outputs import BaseModelOutput  # noqa: E402

import step_trace  # noqa: E402

OUTPUT = pathlib.Path(__file__).with_name("serving_encoders.json")
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
T5 = dict(model_type="t5", architectures=["T5ForConditionalGeneration"], d_model=96, d_kv=24,
          d_ff=320, num_layers=3, num_decoder_layers=2, num_heads=4, vocab_size=500,
          decoder_start_token_id=0)
SIZES = dict(d_model=96, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4,
             decoder_attention_heads=6, encoder_ffn_dim=320, decoder_ffn_dim=288, vocab_size=500,
             pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
BART = SIZES | dict(model_type="bart", architectures=["BartForConditionalGeneration"],
                    max_position_embeddings=256, forced_eos_token_id=None)
WHISPER = SIZES | dict(model_type="whisper", architectures=["WhisperForConditionalGeneration"],
                       num_mel_bins=40, max_source_positions=150, max_target_positions=96,
                       suppress_tokens=None, begin_suppress_tokens=None)
CLASSES = {"t5": (T5ForConditionalGeneration, T5Config),
           "bart": (BartForConditionalGeneration, BartConfig),
           "whisper": (WhisperForConditionalGeneration, WhisperConfig)}
# configuration, cache, precision, users, context, the encoder's positions[, attention]
CASES = [
    (T5, "dynamic", "fp32", 2, 8, 48), (T5, "dynamic", "bf16", 3, 12, 200),
    (T5, "dynamic", "fp32", 1, 2, 16), (T5, "dynamic", "bf16", 16, 14, 30),
    (BART, "dynamic", "fp32", 2, 8, 48), (BART, "dynamic", "bf16", 3, 12, 200),
    (BART, "static", "fp32", 2, 8, 48), (BART, "static", "bf16", 3, 12, 200),
    (WHISPER, "dynamic", "fp32", 2, 8, 150), (WHISPER, "dynamic", "bf16", 3, 12, 150),
    (WHISPER, "static", "fp32", 2, 8, 150), (WHISPER, "static", "bf16", 3, 12, 150),
    (BART, "dynamic", "fp32", 2, 8, 48, "eager"), (BART, "dynamic", "bf16", 3, 12, 200, "eager"),
    (BART, "static", "bf16", 3, 12, 200, "eager"),
    (WHISPER, "dynamic", "fp32", 2, 8, 150, "eager"),
    (WHISPER, "dynamic", "bf16", 3, 12, 150, "eager"),
]


def config_of(options, attention="sdpa"):
    model_class, config_class = CLASSES[options["model_type"]]
    config = config_class(**options)
    config._attn_implementation = attention
    return model_class, config


def cache_bytes(cache):
    """Of the self-attention's and the cross-attention's keys and values."""
    return [sum(states.untyped_storage().nbytes() for layer in part.layers
                if layer.is_initialized for states in (layer.keys, layer.values))
            for part in (cache.self_attention_cache, cache.cross_attention_cache)]


def encoder_input(options, users, length, **where):
    if options["model_type"] == "whisper":
        return torch.zeros((users, options["num_mel_bins"], 2 * length), **where)
    return torch.ones((users, length), dtype=torch.int64, device=where.get("device"))


def steps(trace, model, cache, given, users, context):
    """As in generate(), the encoder's states live on, and logits until the next ones are made."""
    trace.enter_phase(0, "pass")
    states = model.get_encoder()(given, return_dict=True).last_hidden_state
    output = None
    for past in range(context):
        if past > 0:
            trace.enter_phase(past, "pass")
        tokens = torch.empty((users, 1), dtype=torch.int64, device="cuda")
        result = model(encoder_outputs=BaseModelOutput(last_hidden_state=states),
                       decoder_input_ids=tokens, cache=cache, use_cache=True)
        output = result.logits
        del result, tokens
    trace.settle()
    return output


def traced(case):
    options, _, precision, users, context, length, *attention = case
    model_class, config = config_of(options, *attention)
    with torch.device("meta"):
        model = model_class(config).eval()
    with fake_cuda.fake_cuda():
        model = fake_cuda.moved_to_fake(model, DTYPES[precision])
        trace = step_trace.StorageTrace("cuda")
        trace.observe("[parameters and buffers]", [*model.parameters(), *model.buffers()])
        given = encoder_input(options, users, length, device="cuda", dtype=DTYPES[precision])
        trace.observe("[input]", [given])
        cache = EncoderDecoderCache(DynamicCache(config=config), DynamicCache(config=config))
        gc.collect()
        gc.disable()
        try:
            with trace, torch.no_grad():
                steps(trace, model, cache, given, users, context)
        finally:
            gc.enable()
        sizes = cache_bytes(cache)
    peaks = [trace.peaks[number, "pass"] for number in (0, context - 1)]
    return sizes, [{"bytes": one["bytes"], "rounded_512": one["rounded"], "op": one["op"]}
                   for one in peaks]


def generated(case):
    """The caches' bytes when generate() has filled the context but for its last token."""
    options, kind, precision, users, context, length, *attention = case
    torch.manual_seed(0)
    model_class, config = config_of(options, *attention)
    model = model_class(config).eval().to(DTYPES[precision])
    given = encoder_input(options, users, length, dtype=DTYPES[precision])
    # The last token that is generated is not run.
    result = GenerationMixin.generate(  # Whisper's own splits long sound, and returns no cache
        model, given, max_length=context + 1, min_length=context + 1, num_beams=1, do_sample=False,
        cache_implementation=kind, return_dict_in_generate=True)
    return cache_bytes(result.cache)


def measure(case):
    options, kind, precision, users, context, length, *attention = case
    row = {"config": options, "cache": kind, "attention": (*attention, "sdpa")[0], "precision": precision, "users": users,
           "context_length": context, "encoder_length": length, "generated": generated(case)}
    if kind == "static":
        return row
    sizes, (prefill, decode) = traced(case)
    return row | {"traced": sizes, "prefill": prefill, "decode": decode}


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
