"""The models that can be measured, as a table. No torch here: the launcher must stay light.

`models.py` turns a row into a network. A row's `parameters` is what the built network must have; the
tests build every row that the installed packages allow (without memory, on the `meta` device) and
compare.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """One row. `image_size` or `seq` is None where it does not apply."""

    name: str
    package: str  # the Python package that builds it: torch, torchvision, timm or transformers
    kind: str  # what one sample is: "features", "image" or "tokens"
    parameters: int | None  # trainable parameters; None for rows made from a bare name
    image_size: int | None = None
    channels: int = 3
    seq: int | None = None
    default_batch: int = 32

    @property
    def family(self) -> str:
        """What results are grouped by: networks of a family err alike."""
        if self.kind != "image":
            return {"features": "mlp", "tokens": "language model"}[self.kind]
        of_patches = any(word in self.name for word in ("vit", "swin", "deit", "mixer"))
        return "image transformer" if of_patches else "convolutional"


_ROWS = [
    Model("mlp", "torch", "features", 1_863_690, default_batch=128),
    Model("mnist-cnn", "torch", "image", 93_322, image_size=28, channels=1, default_batch=128),
    Model("keras-deep-16x16", "torch", "image", 206_538_153, image_size=16, channels=1),
    Model("unet", "torch", "image", 31_037_698, image_size=256, default_batch=8),
    Model("vgg16", "torchvision", "image", 138_357_544, image_size=224),
    Model("resnet18", "torchvision", "image", 11_689_512, image_size=224),
    Model("resnet50", "torchvision", "image", 25_557_032, image_size=224),
    Model("resnet152", "torchvision", "image", 60_192_808, image_size=224),
    Model("densenet121", "torchvision", "image", 7_978_856, image_size=224),
    Model("mobilenet_v2", "torchvision", "image", 3_504_872, image_size=224),
    Model("efficientnet_b0", "torchvision", "image", 5_288_548, image_size=224),
    Model("inception_v3", "torchvision", "image", 27_161_264, image_size=299),
    Model("vit_b_16", "torchvision", "image", 86_567_656, image_size=224),
    Model("swin_t", "torchvision", "image", 28_288_354, image_size=224),
    Model("convnext_tiny", "torchvision", "image", 28_589_128, image_size=224),
    Model("timm/resnet50", "timm", "image", 25_557_032, image_size=224),
    Model("timm/vit_base_patch16_224", "timm", "image", 86_567_656, image_size=224),
    Model("timm/mobilenetv2_100", "timm", "image", 3_504_872, image_size=224),
    Model("gpt2", "transformers", "tokens", 124_439_808, seq=1024, default_batch=4),
    Model("gpt2-medium", "transformers", "tokens", 354_823_168, seq=1024, default_batch=4),
    Model("bert-base", "transformers", "tokens", 109_483_778, seq=512, default_batch=8),
    Model("bert-base-mlm", "transformers", "tokens", 109_514_298, seq=512, default_batch=8),
]

MODELS = {row.name: row for row in _ROWS}


def find(name: str) -> Model:
    """The row called `name`. `timm/NAME` and `torchvision/NAME` reach their other classifiers.

    Raises KeyError, with the known names, for anything else.
    """
    if name in MODELS:
        return MODELS[name]
    package, _, rest = name.partition("/")
    if rest and package in ("timm", "torchvision"):
        return Model(name, package, "image", None, image_size=224)
    raise KeyError(f"unknown model '{name}'; known: {', '.join(MODELS)}, timm/NAME, "
                   "torchvision/NAME")
