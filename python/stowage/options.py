"""How a step is recorded: RecordOptions, and the words that its fields take.

Without torch, so that `python -m stowage record --help` is quick.
"""

from __future__ import annotations

import dataclasses
import numbers
from typing import Any

from stowage.errors import StowageError

OPTIMIZERS = ("sgd", "sgd-momentum", "momentum", "nesterov", "adam", "adamw", "amsgrad", "adagrad",
              "rmsprop", "rmsprop-momentum", "rmsprop-centered", "adadelta", "adamax", "nadam",
              "radam", "adafactor")
IMPLEMENTATIONS = ("default", "foreach", "fused", "for-loop")
PRECISIONS = ("fp32", "fp64", "fp16", "bf16", "amp-fp16", "amp-bf16")
MODES = ("train", "inference")
LARGEST_BATCH = 1_000_000_000  # of a step file
MOST_MICRO_BATCHES = 1_000_000


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


def check_options(options: RecordOptions) -> None:
    """Raises StowageError for a word or a number that an option does not take."""
    for name, words in (("precision", (*PRECISIONS, None)), ("mode", MODES),
                        ("implementation", IMPLEMENTATIONS)):
        if getattr(options, name) not in words:
            raise StowageError(f"{name}={getattr(options, name)!r} is none of "
                               f"{', '.join(word for word in words if word)}")
    check_count("micro_batches", options.micro_batches, MOST_MICRO_BATCHES)
    if options.seq is not None:
        check_count("seq", options.seq)
    check_capability(options.capability)


def check_count(name: str, value: Any, most: int = 2 ** 60) -> None:
    """Raises StowageError unless the value is a whole number from 1 to `most`."""
    if not is_count(value, 1, most):
        raise StowageError(f"{name}={value!r} is no whole number from 1 to {most:,}")


def check_batch(value: Any) -> None:
    """Raises StowageError for a batch that a step file cannot have."""
    check_count("batch", value, LARGEST_BATCH)


def check_capability(value: Any) -> None:
    """Raises StowageError unless the value is (major, minor)."""
    pair = value if isinstance(value, (tuple, list)) else ()
    if len(pair) != 2 or not is_count(pair[0], 0, 999) or not is_count(pair[1], 0, 9):
        raise StowageError(f"compute_capability={value!r} is not a compute capability",
                           "write (major, minor): (8, 6)")


def as_int(value: Any) -> Any:
    """NumPy's whole numbers as Python's, which JSON takes; anything else as it is."""
    return int(value) if isinstance(value, numbers.Integral) and not isinstance(value, bool) else value


def is_count(value: Any, least: int, most: int) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and (
        least <= int(value) <= most)
