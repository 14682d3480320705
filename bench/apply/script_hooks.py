"""What the lines call that public_scripts.py adds to a script; they stand for

    @stowage.step                                    script_hooks.step
    stowage.apply(model, optimizer, "plan.json")     script_hooks.made(model, optimizer)
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

import stowage

if TYPE_CHECKING:
    from collections.abc import Callable

RECORD, REHEARSE, TRAIN = "record", "rehearse", "train"


class Reached(BaseException):
    """Ends a script at its first step, or behind its last one."""


class Run:
    """How the script runs now. `steps` is None: up to the first."""

    way = RECORD
    plan: Any = None
    steps = 2

    def __init__(self) -> None:
        self.model: Any = None
        self.optimizer: Any = None
        self.applied: Any = None
        self.losses: list[torch.Tensor] = []
        self.first_step: Callable[[], Any] = lambda: None

    def values(self) -> list[torch.Tensor]:
        return [*self.losses, *(one.clone() for one in self.model.state_dict().values())]


run = Run()


def begin(way: str, plan: Any = None) -> Run:
    global run
    run = Run()
    run.way, run.plan = way, plan
    return run


def made(model: Any, optimizer: Any) -> None:
    run.model, run.optimizer = model, optimizer
    if run.way == TRAIN and run.plan is not None:
        run.applied = stowage.apply(model, optimizer, run.plan)


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    if run.way == RECORD:
        return stowage.step(function)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        if run.way == REHEARSE:
            run.first_step = lambda: function(*arguments)
            raise Reached
        if len(run.losses) == run.steps:
            raise Reached
        loss = function(*arguments)
        run.losses.append(loss.detach().clone())
        return loss

    return call
