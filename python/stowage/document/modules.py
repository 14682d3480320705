"""The modules that run in a step's forward, so that a plan knows which it can run again in backward, and
what these are given.

A module that runs more than once has no row: a plan cannot tell its calls apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stowage.document.affine import NotAffine
from stowage.document.saved import is_writable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stowage.document.assemble import Assembly
    from stowage.trace.record import ModuleCall, View


def module_rows(assembly: Assembly) -> list[list[Any]]:
    """Rows [path, kind, inputs], in the order of the calls. Kind: "sequence" of an nn.Sequential, else
    "module". Inputs: rows [number, storage, layout, held_until], the number among the tensors of the
    call's positional arguments. Left out: inputs that are not the step's, or that follow the batch in no
    way that a file can say."""
    rows: list[list[Any]] = []
    for path, first in assembly.step.modules.items():
        calls = [step.modules[path] for step in assembly.steps if path in step.modules]
        is_same = len(calls) == len(assembly.steps) and all(
            call.calls == 1 and call.is_sequence == first.is_sequence and
            [one.number for one in call.inputs] == [one.number for one in first.inputs]
            for call in calls)
        if is_same and is_writable(path):
            rows.append([path, "sequence" if first.is_sequence else "module",
                         input_rows(assembly, path, calls)])
    return rows


def input_rows(assembly: Assembly, path: str, calls: Sequence[ModuleCall]) -> list[list[int]]:
    rows = []
    for inputs in zip(*(call.inputs for call in calls)):
        place_and_layout = tensor_of(assembly, path, [one.view for one in inputs])
        if place_and_layout:
            rows.append([inputs[0].number, *place_and_layout, inputs[0].held_until])
    return rows


def tensor_of(assembly: Assembly, path: str, views: Sequence[View]) -> list[int]:
    """[storage, layout] of the tensor in each step; empty: there is none."""
    places = {storages.local.get(view.storage) for storages, view in zip(assembly.storages, views)}
    if len(places) > 1:
        return []
    try:
        return assembly.tensors([[view] for view in views], path)
    except NotAffine:
        return []
