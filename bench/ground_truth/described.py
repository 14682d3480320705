"""A measured job in the words of `stowage check`: which description, which options.

What `check` has no option for is not passed over: `untold` names it, so that such a job is not judged
as if the same step had been predicted.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import catalogue
from matrix import Job

_DESCRIPTIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "descriptions")
# Where the catalogue's name is not that of the description: the latter, and its arguments.
_OTHERS = {
    "bert-base": (os.path.join(_DESCRIPTIONS, "bert-base-classifier.yaml"), {}),
    "bert-base-mlm": ("bert-base", {}),
    "timm/mobilenetv2_100": ("mobilenet_v2", {"dropout": "0.0"}),
}
_OPTIMIZERS = {"sgd-momentum": "momentum"}
_FIXED_SIZE = ("mnist-cnn", "keras-deep-16x16")


@dataclass(frozen=True)
class Question:
    """The arguments of `check` behind its card and format, and the settings it could not be told."""

    arguments: tuple[str, ...]
    untold: tuple[str, ...]


def question(job: Job, options: frozenset[str]) -> Question:
    """`options` are those that the program has, by name, without their dashes."""
    model, settings = _OTHERS.get(job.model, (job.model.rpartition("/")[2], {}))
    name, _, implementation = job.optimizer.partition(":")
    arguments = [model, "--mode", "train", "--batch", str(job.batch),
                 "--optimizer", _OPTIMIZERS.get(name, name), "--precision", job.precision]
    if implementation:
        arguments += ["--optimizer-implementation", implementation]
    if job.seq is not None:
        arguments += ["--seq", str(job.seq)]
    own_size = catalogue.find(job.model).image_size if job.model in _FIXED_SIZE else None
    if job.image_size is not None and job.image_size != own_size:
        settings = {**settings, "size": str(job.image_size)}
    for key, value in settings.items():
        arguments += ["--set", f"{key}={value}"]
    untold = []
    if job.cudnn_benchmark:
        _tell("cudnn-benchmark", (), options, arguments, untold)
    if job.tf32 == "off":  # "on" adds matrix products to convolutions, which takes no memory
        _tell("tf32", ("off",), options, arguments, untold)
    if job.channels_last:
        _tell("layout", ("nhwc",), options, arguments, untold)
    if job.outputs == "drop":
        untold.append("outputs=drop")
    return Question(tuple(arguments), tuple(untold))


def _tell(option: str, value: tuple, options, arguments: list, untold: list) -> None:
    if option in options:
        arguments += [f"--{option}", *value]
    else:
        untold.append("=".join([option, *value]))
