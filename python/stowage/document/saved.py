"""The rows of what autograd keeps for backward.

A tensor of the first pass has a row of its own, with its key (plans/saved_names.py), its layout, and the
nodes between which it is only kept: [origin, storage, role, layout, key, packed_after, unpacked_before,
held_until].
Of the others, which later passes save, equal rows [origin, storage, role] stand once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stowage.document.affine import NotAffine
from stowage.shown import printable_name

if TYPE_CHECKING:
    from stowage.document.assemble import Assembly
    from stowage.trace.record import SavedRecord, StepRecord


def saved_rows(assembly: Assembly) -> list[list[Any]]:
    """The step file's `saved`. Raises NotAffine where the step saves other tensors at another batch."""
    rows: list[list[Any]] = []
    for records in zip(*aligned(assembly)):
        named = [record.named for record in records if record.named is not None]
        place_and_layout = assembly.tensors([[one.view] for one in named], named[0].key)
        # None: a storage that is not the step's.
        if place_and_layout and is_writable(named[0].key):
            place, layout = place_and_layout
            rows.append([origin_of(assembly, records[0]), place, records[0].role, layout, named[0].key,
                         named[0].packed_after, named[0].unpacked_before, named[0].held_until])
    others = [(origin_of(assembly, record), assembly.local[record.storage], record.role)
              for record in assembly.step.saved
              if (record.named is None or not is_writable(record.named.key))
              and record.storage in assembly.local]
    return rows + [list(row) for row in dict.fromkeys(others)]


def is_writable(key: str) -> bool:
    """Whether a file holds the key as it is: not shortened, and without escapes. One that a script does
    not have is none, and the tensor is as one of a later pass."""
    return printable_name(key) == key


def origin_of(assembly: Assembly, record: SavedRecord) -> int:
    node = assembly.step.nodes[record.node]
    return assembly.tables.origin(node.layer, node.place)


def aligned(assembly: Assembly) -> list[list[SavedRecord]]:
    """The records with keys of each batch's step: as many, with the same keys, in the same order."""
    several = [with_keys(step) for step in assembly.steps]
    for step, records in zip(assembly.steps[1:], several[1:]):
        ours, theirs = keys_of(several[0]), keys_of(records)
        if ours != theirs:
            first = next((key for key, other in zip(ours, theirs) if key != other),
                         max(ours, theirs, key=len)[min(len(ours), len(theirs)):][0])
            raise NotAffine(f"{first}: what is saved for backward at batch {assembly.step.batch} is not "
                            f"what is saved at batch {step.batch}")
    return several


def with_keys(step: StepRecord) -> list[SavedRecord]:
    return [record for record in step.saved if record.named is not None]


def keys_of(records: list[SavedRecord]) -> list[str]:
    return [record.named.key for record in records if record.named is not None]
