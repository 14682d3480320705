"""The optimizer of a step: by its name, as a function of the parameters, or an existing one."""

from __future__ import annotations

import collections
import inspect
import math
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from stowage.errors import StowageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stowage.options import RecordOptions

NAMES: dict[str, tuple[Any, dict[str, Any]]] = {
    "sgd": (torch.optim.SGD, {"lr": 1e-3}),
    "sgd-momentum": (torch.optim.SGD, {"lr": 1e-3, "momentum": 0.9}),
    "momentum": (torch.optim.SGD, {"lr": 1e-3, "momentum": 0.9}),
    "nesterov": (torch.optim.SGD, {"lr": 1e-3, "momentum": 0.9, "nesterov": True}),
    "adam": (torch.optim.Adam, {"lr": 1e-3}),
    "adamw": (torch.optim.AdamW, {"lr": 1e-3}),
    "amsgrad": (torch.optim.Adam, {"lr": 1e-3, "amsgrad": True}),
    "adagrad": (torch.optim.Adagrad, {}),
    "rmsprop": (torch.optim.RMSprop, {}),
    "rmsprop-momentum": (torch.optim.RMSprop, {"momentum": 0.9}),
    "rmsprop-centered": (torch.optim.RMSprop, {"centered": True}),
    "adadelta": (torch.optim.Adadelta, {}),
    "adamax": (torch.optim.Adamax, {}),
    "nadam": (torch.optim.NAdam, {}),
    "radam": (torch.optim.RAdam, {}),
    "adafactor": (torch.optim.Adafactor, {}),
}
# Name in the step file, settings that differ from 0, implementation, whether the name is known.
KnownOptimizer: TypeAlias = tuple[str, dict[str, Any], str, bool]
OptimizerMaker: TypeAlias = "Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]"

IMPLEMENTATIONS: dict[str, dict[str, bool]] = {
    "default": {}, "foreach": {"foreach": True}, "fused": {"fused": True},
    "for-loop": {"foreach": False}}


def optimizer_maker(optimizer: Any, implementation: str = "default") -> OptimizerMaker:
    """parameters -> optimizer, of a name, a class, a function, or an optimizer."""
    options = IMPLEMENTATIONS[implementation]
    if isinstance(optimizer, str):
        if optimizer not in NAMES:
            from stowage.sources.source import closest

            raise StowageError(f"there is no optimizer '{optimizer}'",
                               closest(optimizer, NAMES) or ", ".join(NAMES))
        kind, settings = NAMES[optimizer]
        for option in options:
            if option not in inspect.signature(kind).parameters:
                raise StowageError(f"{optimizer} has no {implementation} implementation")
        return lambda parameters: kind(parameters, **settings, **options)
    if isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError("an existing optimizer is rebuilt by `rebuilt`")
    if callable(optimizer):
        maker: OptimizerMaker = optimizer
        return maker
    raise StowageError(f"optimizer={optimizer!r} is no optimizer",
                       "a name ('adamw'), a class, a function of the parameters, or an optimizer")


def made_optimizer(options: RecordOptions,
                   parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """The options' optimizer of these parameters. Raises StowageError where it refuses its settings."""
    maker = optimizer_maker(options.optimizer, options.implementation)
    try:
        return maker(parameters)
    except ValueError as error:
        raise StowageError(f"optimizer: {error}") from error


def rebuilt(optimizer: torch.optim.Optimizer,
            fakes: dict[int, torch.Tensor]) -> torch.optim.Optimizer:
    """The same optimizer over the fake parameters, with its hooks and without state; so are optimizers
    that it holds itself. copy.copy would leave out hooks and all attributes of a class of one's own."""
    again: torch.optim.Optimizer = object.__new__(type(optimizer))
    for key, value in vars(optimizer).items():
        inner = isinstance(value, torch.optim.Optimizer)
        setattr(again, key, rebuilt(value, fakes) if inner else value)
    again.state = collections.defaultdict(dict)
    again.param_groups = []
    for group in optimizer.param_groups:
        copied = dict(group)
        copied["params"] = [fakes.get(id(p), p) for p in group["params"]]
        again.param_groups.append(copied)
    # A scheduler of learning rates puts a function over `step` that runs the original's.
    vars(again).pop("step", None)
    return again


def settings_of(optimizer: torch.optim.Optimizer) -> KnownOptimizer:
    """What the step file says of the optimizer. Raises StowageError for a setting that is no finite
    number."""
    kind = type(optimizer)
    names = {maker: name for name, (maker, _) in reversed(NAMES.items())}  # the plainest name
    known = names.get(kind) or OTHER_PACKAGES.get((kind.__module__.partition(".")[0], kind.__name__))
    group = optimizer.param_groups[0]
    settings = {}
    for ours, theirs in SETTINGS.items():
        value = group.get(theirs)
        if not isinstance(value, (bool, int, float)):
            continue
        if not math.isfinite(value):
            raise StowageError(f"optimizer: {kind.__name__} has {theirs}={value}",
                               "give it a finite number")
        settings[ours] = value
    if isinstance(group.get("betas"), (tuple, list)):
        settings["beta1"], settings["beta2"] = map(float, group["betas"][:2])
    if known == "rmsprop":
        settings["smoothing"] = group["alpha"]
    if known == "adadelta":
        settings["smoothing"] = group["rho"]
    implementation = ("fused" if group.get("fused") else
                      "for-loop" if group.get("foreach") is False else "default")
    return known or "sgd", settings, implementation, known is not None


# Optimizers of other packages that the table of `stowage help` has.
OTHER_PACKAGES = {("timm", "Lion"): "lion", ("timm", "Lamb"): "lamb",
           ("bitsandbytes", "Adam8bit"): "adam8bit", ("bitsandbytes", "AdamW8bit"): "adamw8bit",
           ("transformers", "Adafactor"): "adafactor-transformers"}
SETTINGS = {"learning_rate": "lr", "momentum": "momentum", "nesterov": "nesterov",
            "weight_decay": "weight_decay", "epsilon": "eps", "dampening": "dampening",
            "amsgrad": "amsgrad", "centered": "centered", "learning_rate_decay": "lr_decay",
            "momentum_decay": "momentum_decay", "decoupled_weight_decay": "decoupled_weight_decay"}
