"""Models of transformers from the files under tests/hf: how each is built and what it is fed."""

import json
import pathlib

import torch
from transformers import masking_utils

import models
from models import Reference

# Fake CUDA has no driver that would say; fake_cuda_shim.cpp answers C++ with the same card.
torch.cuda.get_device_capability = lambda *_: (8, 0)

# Nor can it tell that a mask made of ones has no zeros, on which the fused causal attention depends.
masking_utils.is_tracing = lambda *_: False
masking_utils.fast_all = lambda *_: True

ENCODERS = ("bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert")
HF = pathlib.Path(__file__).parents[1] / "hf"


def configured(path):
    """The class that the file's `architectures` names, and its configuration. What the library adds
    to a configuration on loading (the default attention) is left to it."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    content = json.loads(path.read_text())
    kind = CONFIG_MAPPING[content["model_type"]]
    config = kind.from_dict({k: v for k, v in content.items() if k not in ("torch_dtype", "dtype")})
    return getattr(transformers, content["architectures"][0]), config


def built(path):
    model_class, config = configured(path)
    return model_class(config)


def tokens(_reference, batch, seq):
    return (torch.zeros(batch, seq, dtype=torch.int64),
            torch.zeros(batch, seq, dtype=torch.int64))


def sequences(_reference, batch, seq):
    return torch.zeros(batch, seq, dtype=torch.int64), torch.zeros(batch, dtype=torch.int64)


def images(config, classes):
    size, channels = config.image_size, config.num_channels

    def make(_reference, batch, _seq):
        return torch.rand(batch, channels, size, size), torch.zeros(batch, dtype=torch.int64)
    return make


def spectrograms(config):
    def make(_reference, batch, seq):
        return (torch.rand(batch, config.num_mel_bins, 2 * config.max_source_positions),
                torch.zeros(batch, seq, dtype=torch.int64))
    return make


def with_labels(name, **options):
    def loss(model, inputs, target):
        output = model(**{name: inputs}, labels=target, **options)
        return output, output.loss
    return loss


def pairs(config):
    """CLIP's texts, and images in the target's place."""
    vision = config.vision_config

    def make(_reference, batch, seq):
        return (torch.zeros(batch, seq, dtype=torch.int64),
                torch.rand(batch, vision.num_channels, vision.image_size, vision.image_size))
    return make


def questions(_reference, batch, seq):
    """Tokens and where answers start; where they end."""
    start, end = (torch.zeros(batch, dtype=torch.int64) for _ in range(2))
    return (torch.zeros(batch, seq, dtype=torch.int64), start), end


def answers(model, inputs, target):
    input_ids, start = inputs
    output = model(input_ids=input_ids, start_positions=start, end_positions=target)
    return output, output.loss


def contrastive(model, inputs, target):
    output = model(input_ids=inputs, pixel_values=target, return_loss=True)
    return output, output.loss


def reference(folder, seq=32):
    """The Reference of tests/hf/<folder>."""
    path = HF / folder / "config.json"
    model_class, config = configured(path)
    name = model_class.__name__
    kind = config.model_type
    causal = name.endswith("ForCausalLM") or name.endswith("LMHeadModel")
    if kind == "clip":
        inputs, loss = pairs(config), contrastive
    elif kind in ("vit", "swin"):
        inputs, loss, seq = images(config, 0), with_labels("pixel_values"), None
    elif kind == "whisper":
        inputs, loss = spectrograms(config), with_labels("input_features", use_cache=False)
    elif name.endswith("ForSequenceClassification"):
        options = {} if kind in ENCODERS else {"use_cache": False}
        inputs, loss = sequences, with_labels("input_ids", **options)
    elif name.endswith("ForQuestionAnswering"):
        inputs, loss = questions, answers
    else:
        options = {"use_cache": False} if causal or kind in ("t5", "bart") else {}
        inputs, loss = tokens, with_labels("input_ids", **options)
    return Reference(f"transformers.{name} of tests/hf/{folder}/config.json", None,
                     lambda _seq: built(path), inputs, loss, seq=seq)
