"""Runs a step several times under a recorder, and records what its tensors are.

The first and the steady one at the recorded batch, then one at each of the other batches. The
optimizer makes its state in the first; the second is what the file describes; the others say how its
sizes grow with the batch.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_iter

from stowage.sources.source import failure_at, first_tensor
from stowage.trace.record import ModelTensor, StepRecord, StorageRecord
from stowage.trace.session import recording

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stowage.pretend.session import Session
    from stowage.training.function_step import FunctionStep
    from stowage.training.model_step import ModelStep


DESCRIBED = 1  # the index of the step that the file describes
LETS_GO = 1000  # and of the one in which autograd holds nothing


@dataclasses.dataclass
class Recording:
    """What a run leaves, without tensors."""

    storages: list[StorageRecord]
    steps: list[StepRecord]
    parameters: list[ModelTensor]
    buffers: list[ModelTensor]
    # {storage: (name, parameter's name)} of optimizer state that was there before the first step
    model_state: dict[int, tuple[str, str]]
    compiled: bool  # a part of it is torch.compile's
    stepped: list[torch.optim.Optimizer]  # in the described step, in this order
    updates_any: bool  # the described step writes a trained parameter


def tensors_of(tree: Any) -> list[torch.Tensor]:
    return [t for t in tree_iter(tree) if isinstance(t, torch.Tensor) and t.device.type == "cuda"]


def kernels_of(step: StepRecord) -> list[str]:
    return [node.kernel for node in step.nodes]


def forward_nodes(step: StepRecord) -> list[str]:
    """The kernels before the first of backward."""
    return list(itertools.takewhile(lambda kernel: kernel, (
        "" if node.phase in ("backward", "update") else node.kernel for node in step.nodes)))


def note_held(storages: list[StorageRecord], described: StepRecord,
              letting_go: StepRecord | None) -> None:
    """Notes how long the script holds what autograd saves (SavedTensor.held_until) and what modules are
    given, as the other step shows, if it has the same kernels and keys. Where its backward has other
    kernels, what lives beyond forward is held to the step's end."""
    if letting_go is None:
        return
    ours = [record for record in described.saved if record.named is not None]
    theirs = [record for record in letting_go.saved if record.named is not None]
    forward = forward_nodes(described)
    if forward != forward_nodes(letting_go) or len(ours) != len(theirs):
        return
    for one, other in zip(ours, theirs):
        assert one.named is not None and other.named is not None
        if one.named.key != other.named.key:
            return

    same = len(described.nodes) if kernels_of(described) == kernels_of(letting_go) else len(forward)

    def held_until(storage: int) -> int:
        died = storages[storage].died
        is_over = died is not None and died.step == letting_go.index and died.node < same
        return died.node if died is not None and is_over else len(described.nodes) - 1

    for one, other in zip(ours, theirs):
        assert one.named is not None
        one.named.held_until = held_until(other.storage)
    for path, call in described.modules.items():
        again = letting_go.modules.get(path)
        if again is None or len(again.inputs) != len(call.inputs):
            continue
        for given, given_again in zip(call.inputs, again.inputs):
            given.held_until = held_until(given_again.view.storage)


class StepRunner:
    """`step` has load(batch), run(), optimizers (model_step.py, function_step.py); `models` are
    {prefix: module}, whose tensors are fake by now."""

    def __init__(self, session: Session, step: ModelStep | FunctionStep,
                 models: dict[str, torch.nn.Module]) -> None:
        self.session, self.step, self.models = session, step, models
        self.stepped: list[torch.optim.Optimizer] = []
        # Optimizers that stepped and are none of the step's, by their ids.
        self.unforeseen: dict[int, torch.optim.Optimizer] = {}
        self.updates_any = False
        self.first_storage: dict[str, int] = {}  # of each parameter, before the first step

    def named(self, kind: str) -> Iterator[tuple[str, torch.Tensor]]:
        """(name, tensor) of all models, each tensor once; then the parameters that belong to no model
        and that an optimizer was made of."""
        seen = set()
        for prefix, model in self.models.items():
            for name, tensor in getattr(model, kind)():
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield ".".join(part for part in (prefix, name) if part), tensor
        if kind != "named_parameters":
            return
        groups = [group["params"] for optimizer in self.step.optimizers
                  for group in optimizer.param_groups]
        lone = [tensor for group in groups for tensor in group if id(tensor) not in seen]
        for index, tensor in enumerate({id(tensor): tensor for tensor in lone}.values()):
            yield f"parameter{index}", tensor

    def note_updates(self) -> None:
        """Notes which trained parameters got a gradient in the step and were not updated; of the
        described step, also which optimizers stepped."""
        updates, step = self.recorder.updates, self.recorder.step
        known = {id(optimizer) for optimizer in self.step.optimizers}
        for key, optimizer in updates.optimizers.items():
            if key not in known:
                self.unforeseen.setdefault(key, optimizer)
        if step.index == DESCRIBED:
            self.stepped = list(updates.optimizers.values())
        for name, parameter in self.named("named_parameters"):
            if not parameter.requires_grad or parameter.device.type != "cuda":
                continue
            view = self.recorder.view_of(parameter)
            if view.storage != self.first_storage.get(name) or updates.reaches(view):
                self.updates_any |= step.index == DESCRIBED
            elif name in step.gradients or id(parameter) in updates.asked_about:
                step.not_updated.append(name)

    def on_backward(self, roots: list[torch.Tensor]) -> None:
        # Several losses count as the one of the last pass.
        if roots and roots[0].device.type == "cuda":
            self.recorder.step.losses.append(self.recorder.view_of(roots[0]))

    def on_gradients(self) -> None:
        for name, parameter in self.named("named_parameters"):
            if parameter.grad is not None and parameter.grad.device.type == "cuda":
                self.recorder.step.gradients[name] = self.recorder.view_of(parameter.grad)

    def on_output(self, output: Any) -> None:
        tensor = first_tensor(output)
        if tensor.device.type == "cuda":
            self.recorder.step.output = self.recorder.view_of(tensor)

    def note_optimizer_state(self) -> None:
        names = {id(p): name for name, p in self.named("named_parameters")}
        step = self.recorder.step
        step.host_state_bytes = 0
        for optimizer in self.step.optimizers:
            word = type(optimizer).__name__.lower()
            for parameter, state in optimizer.state.items():
                owner = names.get(id(parameter), "") if isinstance(parameter, torch.Tensor) else ""
                for key, value in state.items() if isinstance(state, dict) else ():
                    if not isinstance(value, torch.Tensor):
                        continue
                    if value.device.type == "cuda":
                        number = self.recorder.storage_of(value)
                        step.optimizer_state[number] = (
                            ".".join(part for part in (word, owner, key) if part), owner)
                    else:
                        step.host_state_bytes += value.numel() * value.element_size()

    def described(self, kind: str) -> list[ModelTensor]:
        rows = []
        for name, tensor in self.named(kind):
            what = ("buffer" if kind == "named_buffers" else
                    "trained" if tensor.requires_grad else "frozen")
            if tensor.device.type == "cuda":
                rows.append(ModelTensor(name, tensor.dtype, tuple(tensor.shape), what,
                                        self.recorder.view_of(tensor)))
        return rows

    def run_step(self, index: int, batch: int, load: bool) -> StepRecord:
        recorder = self.recorder
        recorder.start_step(index, batch)
        if load:  # uploads are no kernels: what they record is left behind
            self.inputs = [recorder.view_of(t) for t in tensors_of(self.step.load(batch))]
            recorder.start_step(index, batch)
        recorder.step.inputs = self.inputs
        self.step.run(recorder.start_micro_batch)
        self.note_optimizer_state()
        self.note_updates()
        return recorder.finish_step()

    def step_that_lets_go(self, batch: int) -> StepRecord | None:
        """One step more, in which autograd holds no storage that it saves: those that live on are held by
        the script. None where it cannot be run so: the recording does without."""
        self.recorder.saved.lets_go = True
        try:
            return self.run_step(LETS_GO, batch, load=True)
        except Exception:
            return None
        finally:
            self.recorder.saved.lets_go = False

    def run(self, batches: Sequence[int]) -> Recording:
        """A Recording: steps 0 and 1 at the first batch, then one at each of the others, up to the first
        that runs other kernels."""
        with recording(self.session.driver, self.models, self.on_backward, self.on_gradients,
                       self.on_output) as self.recorder:
            parameters = self.described("named_parameters")
            buffers = self.described("named_buffers")
            self.first_storage = {row.name: row.view.storage for row in parameters}
            self.note_optimizer_state()
            model_state = dict(self.recorder.step.optimizer_state)
            steps = []
            for index, batch in enumerate([batches[0], *batches]):
                try:
                    steps.append(self.run_step(index, batch, load=index != 1))
                except Exception as error:
                    if batch == batches[0]:
                        raise
                    raise failure_at(batch, error) from error
                if batch != batches[0] and kernels_of(steps[-1]) != kernels_of(steps[1]):
                    break  # other kernels fix the batch: the other batches would say no more
            note_held(self.recorder.storages, steps[DESCRIBED], self.step_that_lets_go(batches[0]))
            compiled = any(type(part).__name__ == "OptimizedModule"
                           for model in self.models.values() for part in model.modules())
            return Recording(self.recorder.storages, steps, parameters, buffers, model_state,
                             compiled, self.stepped, self.updates_any)
