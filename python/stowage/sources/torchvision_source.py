"""torchvision:NAME: classification, segmentation and video models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    from collections.abc import Callable

    import torch

# Weights of the auxiliary outputs' losses, as the papers and torchvision's references have them.
AUXILIARY_WEIGHT = {"googlenet": 0.3}
DEFAULT_AUXILIARY_WEIGHT = 0.4
FRAMES = 16
KINETICS_SIDE = 112


def loss_with_auxiliary(weight: float) -> Callable[[Any, Any], torch.Tensor]:
    """Cross entropy of the output plus `weight` times that of each auxiliary output."""
    def loss(output: Any, target: Any) -> torch.Tensor:
        if hasattr(output, "_fields"):
            main, *others = [part for part in output if part is not None]
        elif isinstance(output, dict):
            main, others = output["out"], [output["aux"]] if "aux" in output else []
        else:
            return class_loss(output, target)
        total = class_loss(main, target)
        for other in others:
            total = total + weight * class_loss(other, target)
        return total

    return loss


def image_side(name: str, torchvision: Any) -> int:
    """The side that the model's published weights were trained for."""
    try:
        transforms = torchvision.models.get_model_weights(name).DEFAULT.transforms()
        side: Any = getattr(transforms, "crop_size", None) or getattr(transforms, "resize_size", None)
        return int(max(side))
    except (AttributeError, ValueError, TypeError):
        return 224


def resolve(name: str, options: SourceOptions) -> Source:
    import torch

    torchvision = import_library("torchvision")
    names = torchvision.models.list_models()
    if name not in names:
        raise StowageError(f"torchvision {torchvision.__version__} has no model '{name}'",
                           closest(name, names))
    builder = torchvision.models.get_model_builder(name)
    family = builder.__module__.split(".")[2] if builder.__module__.count(".") > 2 else "images"
    if family in ("detection", "quantization", "optical_flow"):
        raise StowageError(
            f"'{name}' of torchvision.models.{family} takes no plain batch of images",
            "write a script with @stowage.step (docs/record.md)")
    auxiliary = {"weights_backbone": None} if family in ("segmentation",) else {}
    model = built_on_meta(lambda: builder(weights=None, **auxiliary))
    # A vision transformer takes images of the size that it was built for, and no others.
    side = options.size or getattr(model, "image_size", None) or image_side(name, torchvision)

    def example(batch: int) -> Example:
        shape = (batch, 3, FRAMES, side, side) if family == "video" else (batch, 3, side, side)
        target = (batch, side, side) if family == "segmentation" else (batch,)
        return Example((torch.empty(shape, device="meta"),),
                       target=torch.empty(target, dtype=torch.int64, device="meta"))

    return Source(name, f"torchvision {torchvision.__version__}, {name}", model, example,
                  loss_with_auxiliary(AUXILIARY_WEIGHT.get(name, DEFAULT_AUXILIARY_WEIGHT)))
