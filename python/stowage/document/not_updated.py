"""What a step file says of trained parameters that got a gradient and that nothing updated: the
member `not_updated`, and the warning that follows from it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stowage.training.steps import Recording

ELEMENT_BYTES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4,
                 "uint8": 1, "bool": 1}


def not_updated_ids(recording: Recording) -> list[int]:
    """Numbers of these parameters in the file's table, ascending."""
    names = set(recording.steps[1].not_updated)
    return [number for number, row in enumerate(recording.parameters)
            if row.name in names and row.kind == "trained"]


def update_warning(document: dict[str, Any]) -> dict[str, str] | None:
    """The warning that `stowage check` gives for the file as well; None: nothing is missing."""
    ids = document.get("not_updated", [])
    if not ids:
        return None
    rows = [document["parameters"][number] for number in ids]
    size = sum(ELEMENT_BYTES[word] * math.prod(document["shapes"][shape])
               for _, word, shape, _ in rows)
    one = len(ids) == 1
    return {
        "message": f"the step has no update of {len(ids):,} trained parameter{'' if one else 's'} "
                   f"({size_text(size)}): no optimizer ran for {'it' if one else 'them'} when the step "
                   "was recorded, so the optimizer's state and temporaries are not counted",
        "hint": "stowage check, batch and plan take --optimizer NAME, which adds them; or record a "
                "function that calls optimizer.step()"}


def partial_update_warning(recording: Recording) -> dict[str, str] | None:
    """The warning where some calls of the step update parameters and others do not, as where
    gradients are accumulated over calls. None: all calls are alike."""
    if len({tuple(step.not_updated) for step in recording.steps}) == 1:
        return None
    return {
        "message": "some calls of the step update parameters that others do not: the file has the "
                   "second call alone, without what earlier calls left to it",
        "hint": "where every N-th call updates, record a function that runs N passes and the update"}


def size_text(size: int) -> str:
    """"64.0 MiB", as `stowage` prints sizes."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
