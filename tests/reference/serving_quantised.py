"""What transformers allocates while it serves with its quantised cache: quanto's int4 and int2, fp8.

As serving.py, of the models there. Prompts fill the context, or (`decode`) end where the last token
is the one that makes quanto's layers quantise all anew; `newest` is how many tokens they keep as
computed before it. `held` is what the cache's storages take in the end, and after a step before.
Needs optimum-quanto besides (0.2.7).

Three things keep quanto from being seen on fake tensors, each repaired here: its own operators hide
what runs within them (quantize_affine's Python is called in their stead, and unpack allocates its
result, as its CUDA kernel does), and it packs exact Tensors alone.

    venv/bin/python tests/reference/serving_quantised.py   # serving_quantised.json
"""

import gc
import importlib.metadata
import json
import pathlib
import warnings

import fake_cuda

fake_cuda.relaunch_with_shim()

import torch  # noqa: E402

own_functions = {}
register_implementation = torch.library.impl


def remembering(name, *rest):
    register = register_implementation(name, *rest)

    def remembered(function):
        own_functions.setdefault(name, function)
        return register(function)
    return remembered


torch.library.impl = remembering
import optimum.quanto  # noqa: E402, F401
from optimum.quanto.tensor.packed import PackedTensor  # noqa: E402
from optimum.quanto.tensor.qbits import QBitsTensor  # noqa: E402
from optimum.quanto.tensor.weights.qbits import WeightQBitsTensor  # noqa: E402

torch.library.impl = register_implementation

import transformers  # noqa: E402
from transformers.cache_utils import QuantizedCache  # noqa: E402

import serving  # noqa: E402
import step_trace  # noqa: E402

OUTPUT = pathlib.Path(__file__).with_name("serving_quantised.json")
# model, format, precision, users, context, residual length
CASES = [
    ("llama-3-8b", "int4", "bf16", 3, 96, 8), ("llama-3-8b", "int2", "bf16", 3, 96, 8),
    ("llama-3-8b", "int4", "fp32", 2, 50, 8), ("llama-3-8b", "int4", "bf16", 4, 300, 128),
    ("llama-3-8b", "int4", "bf16", 3, 30, 128), ("llama-3-8b", "int2", "fp32", 1, 21, 8),
    ("gpt2", "int4", "fp32", 2, 60, 8), ("gpt2", "int2", "bf16", 5, 130, 16),
    ("llama-3-8b", "fp8", "bf16", 3, 96, None), ("llama-3-8b", "fp8", "fp32", 2, 50, None),
    ("gpt2", "fp8", "bf16", 5, 130, None),
]


def packs_any_tensor(self, qtype, axis, group_size, size, stride, data, scale, shift,
                     requires_grad=False):
    if not isinstance(data, PackedTensor):
        data = PackedTensor.pack(data, qtype.bits)
    QBitsTensor.__init__(self, qtype, axis, group_size, size, stride, data, scale, shift)


def unpacked(packed, bits):
    shape = (packed.shape[0] * (8 // bits), *packed.shape[1:])
    return torch.empty(shape, dtype=torch.uint8, device=packed.device)


def show_quanto():
    torch.ops.quanto.quantize_affine = own_functions["quanto::quantize_affine"]
    torch.ops.quanto.unpack = unpacked
    WeightQBitsTensor.__init__ = packs_any_tensor


def held_tensors(layer):
    for states in (layer._quantized_keys, layer._quantized_values):
        yield from ([states._data._data, states._scale, states._shift]
                    if isinstance(states, QBitsTensor) else states)
    yield from (layer.keys, layer.values)


def held_bytes(cache):
    return sum(step_trace.rounded(tensor.untyped_storage().nbytes())
               for layer in cache.layers for tensor in held_tensors(layer))


def new_cache(form, model, residual):
    if form == "fp8":
        return QuantizedCache("fp8", model.config)
    return QuantizedCache("quanto", model.config, nbits=int(form[-1]), residual_length=residual)


def traced(model_name, form, precision, users, residual, lengths):
    model_class, config_class, options, _ = serving.MODELS[model_name]
    config = config_class(**options)
    config._attn_implementation = "sdpa"
    with torch.device("meta"):
        model = model_class(config).eval()
    with fake_cuda.fake_cuda():
        model = fake_cuda.moved_to_fake(model, serving.DTYPES[precision])
        trace = step_trace.StorageTrace("cuda")
        trace.observe("[parameters and buffers]", [*model.parameters(), *model.buffers()])
        cache = new_cache(form, model, residual)
        gc.collect()
        gc.disable()
        try:
            with trace, torch.no_grad():
                serving.passes(trace, model, cache, users, lengths)
        finally:
            gc.enable()
        held = held_bytes(cache)
    last = trace.peaks[len(lengths) - 1, "pass"]
    return {"bytes": last["bytes"], "rounded_512": last["rounded"], "op": last["op"], "held": held}


def measure(case):
    model, form, precision, users, context, residual = case
    newest = min(residual - 1, context - 2) if residual else 2
    prefill = traced(model, form, precision, users, residual, [context])
    decode = traced(model, form, precision, users, residual,
                    [context - newest - 1] + [1] * (newest + 1))
    return {"model": model, "arguments": serving.MODELS[model][3], "cache": "quantized",
            "kv_dtype": form, "precision": precision, "users": users, "context_length": context,
            "residual": residual, "prefill": prefill, "decode": decode}


def main():
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    show_quanto()
    rows = [measure(case) for case in CASES]
    versions = {"torch": torch.__version__, "transformers": transformers.__version__,
                "optimum-quanto": importlib.metadata.version("optimum-quanto")}
    text = ",\n".join("  " + json.dumps(row) for row in rows)
    OUTPUT.write_text('{"schema_version": 1, "versions": %s,\n"cases": [\n%s\n]}\n'
                      % (json.dumps(versions), text))


if __name__ == "__main__":
    main()
