"""The storages of a step, in an order that is the same at every batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stowage.trace.record import StepRecord, View
    from stowage.training.steps import Recording


class StepStorages:
    """`numbers` are the recording's numbers of the step's storages: parameters, buffers, what else was
    there before the step and is after it, inputs, and what the step made, in order of birth.
    Storages of the step before, which a variable kept until this step assigned it again, are not
    among them: the storage that took their place stands for both."""

    def __init__(self, recording: Recording, step: StepRecord) -> None:
        self.step = step
        storages = recording.storages
        touched = {view.storage for node in step.nodes for view in (*node.reads, *node.writes)}
        touched |= step.optimizer_state.keys()  # also of an optimizer that does not step now
        known = [row.view.storage for row in (*recording.parameters, *recording.buffers)]
        inputs = [view.storage for view in step.inputs]
        self.inputs = set(inputs)
        known = list(dict.fromkeys(known))
        inputs = [number for number in dict.fromkeys(inputs) if number not in set(known)]
        seen = {*known, *inputs}
        lasting, made = [], []
        for number in sorted(touched - seen):
            record = storages[number]
            if record.born.step == step.index:
                made.append(number)
            elif record.died is None or record.died.step > step.index:
                lasting.append(number)
        self.made = set(made)
        self.numbers = known + lasting + inputs + made
        self.local = {number: place for place, number in enumerate(self.numbers)}

    def views(self, views: Sequence[View]) -> list[View]:
        """Those of the views whose storages are the step's."""
        return [view for view in views if view.storage in self.local]
