"""Networks whose linear layers hold quantised weights, as bitsandbytes and torchao make them.

As transformers does on loading, all linear layers are replaced but the output's. The weights are
made in their own format on the device before, and quantised there, one after the other.
"""

from __future__ import annotations

from tuning_cases import Case

_KEPT = ("lm_head",)


def _converted(network) -> list[tuple[str, object]]:
    import torch
    return [(path, layer) for path, layer in network.named_modules()
            if type(layer) is torch.nn.Linear and path.rpartition(".")[2] not in _KEPT]


def _with_4_bits(layer, kind: str, double_quant: bool):
    import bitsandbytes
    made = bitsandbytes.nn.Linear4bit(
        layer.in_features, layer.out_features, bias=layer.bias is not None,
        compute_dtype=layer.weight.dtype, compress_statistics=double_quant, quant_type=kind,
        device="meta")
    made.weight = bitsandbytes.nn.Params4bit(
        layer.weight.data, requires_grad=False, compress_statistics=double_quant,
        quant_type=kind, module=made).to(layer.weight.device)
    made.bias = layer.bias
    return made


def _with_8_bits(layer):
    import bitsandbytes
    made = bitsandbytes.nn.Linear8bitLt(
        layer.in_features, layer.out_features, bias=layer.bias is not None,
        has_fp16_weights=False, threshold=6.0, device="meta")
    made.weight = bitsandbytes.nn.Int8Params(
        layer.weight.data, requires_grad=False, has_fp16_weights=False).to(layer.weight.device)
    made.bias = layer.bias
    return made


def _with_bitsandbytes(network, base: str) -> None:
    """`base` as `stowage check --base` takes it: KIND[,double_quant=false]."""
    kind, *settings = base.split(",")
    for path, layer in _converted(network):
        made = (_with_8_bits(layer) if kind == "int8"
                else _with_4_bits(layer, kind, "double_quant=false" not in settings))
        parent, _, name = path.rpartition(".")
        setattr(network.get_submodule(parent), name, made)
        layer.weight = None


def _with_torchao(network, name: str, settings: dict[str, str]) -> None:
    import torchao.quantization
    converted = {id(layer) for _, layer in _converted(network)}
    torchao.quantization.quantize_(network, getattr(torchao.quantization, name)(**settings),
                                   filter_fn=lambda layer, path: id(layer) in converted)


def quantise(network, case: Case) -> None:
    """Replaces the weights in place; nothing where the case asks for none."""
    if case.base:
        _with_bitsandbytes(network, case.base)
    if case.torchao:
        _with_torchao(network, *case.torchao_settings())
