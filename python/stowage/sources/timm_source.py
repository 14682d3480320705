"""timm:NAME: every model of timm's registry, at the size that its configuration names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stowage.errors import StowageError
from stowage.sources.source import (
    Example,
    Source,
    SourceOptions,
    built_on_meta,
    class_loss,
    closest,
    import_library,
)

if TYPE_CHECKING:
    pass


def resolve(name: str, options: SourceOptions) -> Source:
    import torch

    timm = import_library("timm")
    if not timm.is_model(name):
        plain = name.partition(".")[0]  # "vit_base_patch16_224.augreg_in21k": a name with a tag
        raise StowageError(f"timm {timm.__version__} has no model '{name}'",
                           closest(plain, timm.list_models()))
    model = built_on_meta(lambda: timm.create_model(name, pretrained=False))
    channels, height, width = model.default_cfg.get("input_size", (3, 224, 224))
    if options.size:
        height = width = options.size

    def example(batch: int) -> Example:
        return Example((torch.empty((batch, channels, height, width), device="meta"),),
                       target=torch.empty((batch,), dtype=torch.int64, device="meta"))

    return Source(name, f"timm {timm.__version__}, {name}", model, example, class_loss)
