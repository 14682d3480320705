"""transformers:NAME: a model from its configuration alone.

NAME is a model type ("gpt2": its configuration class's defaults), a folder, a config.json, or a
name in the hub's cache. Nothing is downloaded.
"""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any

from stowage.errors import StowageError
from stowage.sources.source import (
    Example,
    Source,
    SourceOptions,
    built_on_meta,
    class_loss,
    closest,
    first_tensor,
    import_library,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

DEFAULT_SEQ = 128


def default_heads(config: Any) -> tuple[str, ...]:
    """Which kind of head a configuration that names no architecture gets: the first that exists."""
    if getattr(config, "is_encoder_decoder", False):
        return ("SpeechSeq2Seq", "Seq2SeqLM")
    if hasattr(config, "text_config") and hasattr(config, "vision_config"):
        return ("ImageTextToText",)
    if getattr(config, "is_decoder", False):
        return ("CausalLM",)
    return ("MaskedLM", "CausalLM", "ImageClassification", "SequenceClassification")


def configuration(name: str, transformers: Any) -> Any:
    """The configuration that NAME stands for."""
    path = pathlib.Path(name)
    if path.exists():
        try:
            return transformers.AutoConfig.from_pretrained(str(path), local_files_only=True)
        except (ValueError, OSError, KeyError) as error:
            raise StowageError(f"'{name}' is no configuration that transformers "
                               f"{transformers.__version__} reads: {error}") from None
    types = transformers.CONFIG_MAPPING
    if name in types:
        return transformers.AutoConfig.for_model(name)
    try:
        previous = os.environ.get("HF_HUB_OFFLINE")
        os.environ["HF_HUB_OFFLINE"] = "1"
        try:
            return transformers.AutoConfig.from_pretrained(name, local_files_only=True)
        finally:
            if previous is None:
                del os.environ["HF_HUB_OFFLINE"]
            else:
                os.environ["HF_HUB_OFFLINE"] = previous
    except (OSError, ValueError):
        hint = closest(name, types.keys()) or "a model type, a folder, a config.json"
        raise StowageError(
            f"'{name}' is no model type of transformers {transformers.__version__}, no file, and "
            "not in the hub's cache", hint) from None


def model_class(config: Any, head: str | None, transformers: Any) -> Any:
    """The class to build: the configuration's own, or that of the head."""
    if head is None and config.architectures:
        found = getattr(transformers, config.architectures[0], None)
        if found is not None:
            return found
    for kind in (head,) if head else default_heads(config):
        auto = getattr(transformers, f"AutoModelFor{kind}", None)
        if auto is None:
            kinds = sorted(n.removeprefix("AutoModelFor") for n in dir(transformers)
                           if n.startswith("AutoModelFor"))
            raise StowageError(f"transformers has no head '{kind}'", closest(kind, kinds))
        mapping = auto._model_mapping
        if type(config) in mapping.keys():
            found = mapping[type(config)]
            return found[0] if isinstance(found, (tuple, list)) else found
    if head:
        raise StowageError(f"{config.model_type} has no head '{head}' in transformers")
    return transformers.AutoModel._model_mapping[type(config)]


def text_config(config: Any) -> Any:
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def example_maker(model: torch.nn.Module, config: Any, seq: int,
                  size: int | None) -> Callable[[int], Example]:
    """batch -> Example, from what the model's forward takes."""
    import inspect

    import torch

    takes = inspect.signature(model.forward).parameters
    main = getattr(model, "main_input_name", "input_ids")
    has_labels = "labels" in takes

    def ids(batch: int, length: int = seq) -> torch.Tensor:
        return torch.empty((batch, length), dtype=torch.int64, device="meta")

    def images(batch: int) -> torch.Tensor:
        vision = getattr(config, "vision_config", config)
        side = size or getattr(vision, "image_size", 224)
        height, width = side if isinstance(side, (tuple, list)) else (side, side)
        return torch.empty((batch, getattr(vision, "num_channels", 3), height, width),
                           device="meta")

    def example(batch: int) -> Example:
        words: dict[str, Any] = {}
        classifies = "Classification" in type(model).__name__
        if main == "pixel_values" or type(model).__name__ == "CLIPModel":
            words["pixel_values"] = images(batch)
            if main != "pixel_values":
                words["input_ids"] = ids(batch, min(seq, text_config(config).max_position_embeddings))
                words["return_loss"] = True
        elif main == "input_features":
            bins = getattr(config, "num_mel_bins", 80)
            words["input_features"] = torch.empty(
                (batch, bins, 2 * getattr(config, "max_source_positions", 1500)), device="meta")
        else:
            words["input_ids"] = ids(batch)
        if has_labels:
            words["labels"] = (torch.empty((batch,), dtype=torch.int64, device="meta")
                               if classifies and "Token" not in type(model).__name__ else ids(batch))
        elif getattr(config, "is_encoder_decoder", False):
            words["decoder_input_ids"] = ids(batch)
        if "use_cache" in takes or "use_cache" in vars(config):
            if any(name in takes for name in ("use_cache", "kwargs")):
                words["use_cache"] = False
        return Example((), words)

    return example


def own_or_class_loss(output: Any, target: Any) -> torch.Tensor:
    """The loss that the model computed from its labels, else cross entropy of its output."""
    loss = getattr(output, "loss", None)
    if loss is not None:
        return loss
    scores = first_tensor(output)
    return class_loss(scores, target) if scores.dim() == 2 else scores.float().mean()


def resolve(name: str, options: SourceOptions) -> Source:
    transformers = import_library("transformers")
    config = configuration(name, transformers)
    build = model_class(config, options.head, transformers)
    if getattr(config, "is_encoder_decoder", False) and getattr(
            config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = config.pad_token_id or 0  # shifts labels; its value is nothing
    model = built_on_meta(lambda: build._from_config(config))
    text = text_config(config)
    longest = getattr(text, "max_position_embeddings", None)
    seq = options.seq or min(DEFAULT_SEQ, longest or DEFAULT_SEQ)
    if longest and seq > longest and longest > 0:
        raise StowageError(f"--seq {seq} is longer than the model's {longest} positions")
    main = getattr(model, "main_input_name", "input_ids")
    label = pathlib.Path(name).parent.name if name.endswith(".json") else pathlib.Path(name).name
    return Source(label or name,
                  f"transformers {transformers.__version__}, {build.__name__}",
                  model, example_maker(model, config, seq, options.size), own_or_class_loss,
                  seq if main != "pixel_values" else None)
