"""How a step is recorded: RecordOptions, and the words that its fields take.

Without torch, so that `python -m stowage record --help` is quick.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from stowage.errors import StowageError

OPTIMIZERS = ("sgd", "sgd-momentum", "momentum", "nesterov", "adam", "adamw", "amsgrad", "adagrad",
              "rmsprop", "rmsprop-momentum", "rmsprop-centered", "adadelta", "adamax", "nadam",
              "radam", "adafactor")
IMPLEMENTATIONS = ("default", "foreach", "fused", "for-loop")
PRECISIONS = ("fp32", "fp64", "fp16", "bf16", "amp-fp16", "amp-bf16")
MODES = ("train", "inference")


@dataclasses.dataclass
class RecordOptions:
    """How a step is recorded. A recorded function has its own optimizer, precision and mode: of these
    fields only `capability` and `seq` are read then.

    optimizer      a name of OPTIMIZERS, a class, a function of the parameters, or an optimizer
    implementation of the optimizer: a word of IMPLEMENTATIONS
    precision      a word of PRECISIONS; None: the recording itself tells it
    micro_batches  forward and backward passes before an update, at least 1
    set_to_none    whether zero_grad frees the gradients
    capability     compute capability of the device, (major, minor)
    seq            tokens of a sequence, where the model has sequences
    """

    optimizer: Any = "sgd"
    implementation: str = "default"
    precision: str | None = "fp32"
    mode: str = "train"
    micro_batches: int = 1
    set_to_none: bool = True
    capability: tuple[int, int] = (8, 6)
    seq: int | None = None


def check_words(options: RecordOptions) -> None:
    """Raises StowageError for a word that an option does not take."""
    for name, words in (("precision", PRECISIONS), ("mode", MODES),
                        ("implementation", IMPLEMENTATIONS)):
        if getattr(options, name) not in words:
            raise StowageError(f"{name}={getattr(options, name)!r} is none of {', '.join(words)}")
