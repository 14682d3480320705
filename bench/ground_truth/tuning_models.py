"""Networks of fine_tuning.py's cases: configurations, adapters, batches. Weights are random.

A case's configuration is that of tests/hf with the case's changes; `small` makes it tiny, for dry runs.
Nothing is measured here and nothing is downloaded.
"""

from __future__ import annotations

import json
import os

import tuning_weights
from tuning_cases import Case

_HF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "hf")
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "num_decoder_layers", "encoder_layers",
           "decoder_layers")
_TINY = {"hidden_size": 64, "n_embd": 64, "d_model": 64, "intermediate_size": 128, "d_ff": 128,
         "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "num_attention_heads": 4, "n_head": 4,
         "num_heads": 4, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 16, "d_kv": 16, "vocab_size": 512,
         "max_source_positions": 32, "sliding_window": 8, **dict.fromkeys(_LAYERS, 2)}
_HEADS = {"vit": "ViTForImageClassification"}
ENCODER_DECODERS = ("t5", "whisper")


def shrunken(case: Case) -> Case:
    """The same case at a size for a CPU. Its key is not the case's own."""
    from dataclasses import replace
    cut = lambda value, most: None if value is None else min(value, most)
    return replace(case, batch=min(case.batch, 2), seq=cut(case.seq, 12), layers=cut(case.layers, 2),
                   encoder_seq=cut(case.encoder_seq, 12))


def configuration(case: Case, small: bool = False) -> dict:
    """The content of the case's config.json."""
    with open(os.path.join(_HF, case.model, "config.json"), encoding="utf-8") as file:
        content = json.load(file)
    content["architectures"] = [_HEADS.get(content["model_type"], content["architectures"][0])]
    changes = dict.fromkeys(_LAYERS, case.layers) if case.layers else {}
    if small:
        changes.update(_TINY)
        changes.update({name: 1 for name, value in content.items()
                        if name.endswith("_token_id") and isinstance(value, int)})
    present = lambda name: content.get(name) is not None
    content.update({name: value for name, value in changes.items() if present(name)})
    return content


def lora_options(text: str) -> dict:
    """peft's LoraConfig for what `stowage check --lora` takes; `autocast` is get_peft_model's."""
    settings = dict(part.split("=", 1) for part in text.split(","))
    targets = settings["targets"]
    options = {"r": int(settings.get("r", 8)), "lora_alpha": int(settings.get("alpha", 8)),
               "lora_dropout": float(settings.get("dropout", 0)),
               "use_dora": settings.get("use_dora") == "true",
               "target_modules": targets if targets == "all-linear" else targets.split("+"),
               "autocast": "dtype" not in settings}
    if "rank_pattern" in settings:
        pairs = (pair.split(":") for pair in settings["rank_pattern"].split("+"))
        options["rank_pattern"] = {name: int(rank) for name, rank in pairs}
    return options


def _transformers_network(case: Case, small: bool):
    import transformers
    content = configuration(case, small)
    kind = content.pop("model_type")
    for name in ("torch_dtype", "dtype", "transformers_version"):
        content.pop(name, None)
    config = transformers.CONFIG_MAPPING[kind].from_dict(content)
    if kind in ENCODER_DECODERS and config.decoder_start_token_id is None:
        config.decoder_start_token_id = 0
    if case.attention:
        config._attn_implementation = case.attention
    return getattr(transformers, content["architectures"][0])(config)


def _vision_network(case: Case):
    library, _, name = case.model.partition("/")
    if library == "timm":
        import timm
        import timm.layers
        timm.layers.set_fused_attn(case.attention != "eager")
        return timm.create_model(name, pretrained=False)
    import torchvision
    return torchvision.models.get_model(name, weights=None)


def with_adapters(network, lora: str):
    """peft's model around the network; adapters beside 16 bits are fp32 unless told otherwise."""
    import peft
    options = lora_options(lora)
    autocast = options.pop("autocast")
    return peft.get_peft_model(network, peft.LoraConfig(**options), autocast_adapter_dtype=autocast)


def build(case: Case, device: str, small: bool = False):
    """The network on the device, made there in its own format."""
    import torch
    kept = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if case.precision == "bf16" else torch.float32)
    try:
        with torch.device(device):
            network = (_transformers_network(case, small) if case.from_hub()
                       else _vision_network(case))
    finally:
        torch.set_default_dtype(kept)
    tuning_weights.quantise(network, case)
    if case.lora:
        network = with_adapters(network, case.lora)
    if case.checkpoint:  # after the adapters, as transformers' Trainer does it
        network.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": False})
    return network.train(case.training())


def _side(case: Case, network) -> int:
    if case.from_hub():
        return network.config.image_size
    sizes = getattr(network, "default_cfg", {}).get("input_size", (3, 224, 224))
    return sizes[-1]


def batch(case: Case, network, device: str) -> dict:
    """Random inputs by name; with labels where the case trains."""
    import torch
    number = torch.bfloat16 if case.precision == "bf16" else torch.float32
    tokens = lambda length: torch.randint(0, 100, (case.batch, length), device=device)
    images = case.seq is None
    if images:
        side = _side(case, network)
        made = {"pixel_values": torch.rand(case.batch, 3, side, side, device=device, dtype=number)}
    elif network.config.model_type == "whisper":
        made = {"input_features": spectrogram(case, network.config, device)}
    else:
        made = {"input_ids": tokens(case.seq)}
    if case.training():
        made["labels"] = (torch.randint(0, 2, (case.batch,), device=device) if images
                          else tokens(case.seq))
    elif case.from_hub() and network.config.model_type in ENCODER_DECODERS:
        made["decoder_input_ids"] = tokens(case.seq)
    if case.from_hub() and not images and network.config.model_type != "bert":
        made["use_cache"] = False
    return made


def spectrogram(case: Case, config, device: str):
    """Whisper's input: 30 seconds, whatever was said."""
    import torch
    number = torch.bfloat16 if case.precision == "bf16" else torch.float32
    return torch.rand(case.batch, config.num_mel_bins, 2 * config.max_source_positions,
                      device=device, dtype=number)
