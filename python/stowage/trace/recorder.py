"""The dispatch mode that records a step.

Every operator that reaches the dispatcher below autograd is a call. A call that only makes views is
no node; its result is a storage seen otherwise. A storage is there from the call that returned it
until its last reference is gone, which a weak reference tells. What a kernel allocates and frees
inside itself (workspaces, internal copies) is not seen here: `stowage` adds it by its own table.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from stowage.errors import StowageError
from stowage.trace.calls import Call, Signature, flops_of, is_on_device
from stowage.trace.engine import (
    adds_bias_of_linear,
    called_by_engine,
    called_by_torch_optimizer,
    gradient_sum,
)
from stowage.trace.failures import untraceable
from stowage.trace.modules import runs_in_sequence
from stowage.trace.places import place
from stowage.trace.record import (
    ModuleCall,
    ModuleInput,
    Moment,
    NodeRecord,
    StepRecord,
    StorageRecord,
    View,
)
from stowage.trace.updates import Updates

if TYPE_CHECKING:
    from types import FrameType

    from stowage.trace.modules import RunningModules
    from stowage.trace.phases import Phases
    from stowage.trace.saved import SavedTensors

# Kernels of training batch norm write the running statistics, which their schemas do not say.
WRITES_STATISTICS = {"aten::cudnn_batch_norm", "aten::native_batch_norm"}
# Storages that were there before they were first seen.
BEFORE_RECORDING = Moment(-1, -1)
READ_VALUE = torch.ops.aten._local_scalar_dense.default
LONGEST_TEXT = 4000  # bytes; a step file's texts end at 4096


def joined_positions(positions: list[str]) -> str:
    """"0,1,3"; a written list of arguments by its name and length: "self:3". Where that would be
    too long, results in a row as "0..1200"."""
    words = []
    for word, run in itertools.groupby(positions):
        count = len(list(run))
        words.append(word if count == 1 else f"{word}:{count}")
    text = ",".join(words)
    if len(text) > LONGEST_TEXT and all(word.isdigit() for word in words):
        return f"{words[0]}..{words[-1]}"
    return text


class Recorder(TorchDispatchMode):
    """Records calls on CUDA tensors. `modules`, `phases`, `saved` are the watchers of this package;
    `inside_linear` is set by the function mode of session.py."""

    modules: RunningModules
    phases: Phases
    saved: SavedTensors

    def __init__(self) -> None:
        super().__init__()
        self.storages: list[StorageRecord] = []
        self.keys: dict[int, int] = {}  # {a living storage's address: its number}
        self.references: dict[int, weakref.ref[Any]] = {}
        self.signatures: dict[torch._ops.OpOverload, Signature] = {}
        # {autograd's sequence number: (layer, place) of the forward call}. Each thread counts from 0,
        # so that regions which run again, in the engine's thread, have a table of their own.
        self.origins: dict[int, tuple[str, str]] = {}
        self.origins_again: dict[int, tuple[str, str]] = {}
        self.reentrant = 0  # how many reentrant checkpoints are in their own backward
        self.step = StepRecord(-1, 0)
        self.last_operator: torch._ops.OpOverload | None = None
        self.last_origin = ("", "")
        self.inside_linear = False
        self.is_paused = False  # what runs is no part of the step
        self.micro_batch = 0
        self.updates = Updates()

    # Storages

    def now(self) -> Moment:
        return Moment(self.step.index, len(self.step.nodes) - 1)

    def storage_of(self, tensor: torch.Tensor, born: Moment = BEFORE_RECORDING) -> int:
        """The number of the tensor's storage. A storage that is new to the recorder gets a number, and
        `born` as its birth."""
        if tensor.layout is not torch.strided:
            raise StowageError(f"{place() or self.modules.path}: a tensor of layout {tensor.layout}",
                               "sparse tensors are not recorded")
        storage = tensor.untyped_storage()
        key = storage._cdata
        number = self.keys.get(key)
        if number is None:
            number = self.keys[key] = len(self.storages)
            self.storages.append(StorageRecord(storage.nbytes(), born))
            self.references[number] = weakref.ref(storage, lambda _: self.release(key, number))
        return number

    def release(self, key: int, number: int) -> None:
        self.storages[number].died = self.now()
        del self.keys[key]
        del self.references[number]

    def view_of(self, tensor: torch.Tensor, born: Moment = BEFORE_RECORDING) -> View:
        return View(self.storage_of(tensor, born), tensor.dtype, tuple(tensor.shape), tensor.stride(),
                    tensor.storage_offset(), tensor._is_view())

    # Steps

    def start_step(self, index: int, batch: int) -> None:
        self.step = StepRecord(index, batch)
        self.last_operator = None
        self.origins, self.origins_again = {}, {}
        self.micro_batch = 0
        self.saved.start()
        self.updates.start()
        self.phases.start()
        self.modules.layers = {}

    def start_micro_batch(self, index: int) -> None:
        self.micro_batch = index

    def finish_step(self) -> StepRecord:
        self.step.saved = self.saved.records()
        self.step.layers = self.modules.layers
        return self.step

    def note_call(self, path: str, module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        """A module of a model begins; those of the first pass's forward are recorded."""
        if not self.saved.runs_first_forward:
            return
        if path in self.step.modules:
            self.step.modules[path].calls += 1
            return
        tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
        self.step.modules[path] = ModuleCall(runs_in_sequence(module), [
            ModuleInput(number, self.view_of(one)) for number, one in enumerate(tensors)
            if one.device.type == "cuda" and one.layout is torch.strided])

    # Calls

    def __torch_dispatch__(self, operator: torch._ops.OpOverload, types: Any,
                           arguments: tuple[Any, ...] = (),
                           options: dict[str, Any] | None = None) -> Any:
        options = options or {}
        if self.is_paused or operator.namespace in ("prim", "profiler"):
            return operator(*arguments, **options)
        try:
            operator, result = self.run(operator, arguments, options, sys._getframe(1))
        except StowageError:
            raise
        except Exception as error:
            refusal = untraceable(operator, error, self.modules.path)
            if refusal is None:
                raise
            raise refusal from error
        self.record(operator, arguments, options, result)
        self.last_operator = operator
        return result

    def run(self, operator: torch._ops.OpOverload, arguments: tuple[Any, ...],
            options: dict[str, Any], frame: FrameType | None) -> tuple[torch._ops.OpOverload, Any]:
        """(operator, result): as called, or as PyTorch would do it without a mode."""
        if operator is READ_VALUE and called_by_torch_optimizer(frame):
            return operator, 1.0
        if operator is torch.ops.aten.add.Tensor and not options:
            backward = self.phases.phase == "backward" and not torch.is_grad_enabled()
            if backward and called_by_engine(frame):
                return gradient_sum(*arguments)
            if adds_bias_of_linear(operator, arguments, self.last_operator, self.inside_linear):
                in_place = torch.ops.aten.add_.Tensor
                return in_place, torch.ops.aten.alias.default(in_place(*arguments))
        return operator, operator(*arguments, **options)

    def record(self, operator: torch._ops.OpOverload, arguments: tuple[Any, ...],
               options: dict[str, Any], result: Any) -> None:
        signature = self.signatures.get(operator)
        if signature is None:
            signature = self.signatures[operator] = Signature(operator)
        call = Call(signature, arguments, options)
        reads = [self.view_of(tensor) for _, tensor in call.tensors]
        known = {view.storage for view in reads}
        writes, positions = [], []
        here = Moment(self.step.index, len(self.step.nodes))
        # An undefined result counts: places are the schema's.
        for position, tensor in enumerate(tree_iter(result)):
            if is_on_device(tensor):
                writes.append(self.view_of(tensor, here))
                positions.append(str(position))
        written = self.written_arguments(signature, call)
        if all(view.storage in known for view in writes) and not written:
            return  # views, or nothing on the device
        in_results = {view.storage for view in writes}
        for (name, _), view in zip(call.tensors, reads):
            if name in written and view.storage not in in_results:
                writes.append(view)
                positions.append(name)
        if not writes:
            return
        if signature.kernel.startswith("aten::resize_"):
            self.grow(arguments[0])
        self.add_node(operator, signature, call, reads, writes, positions, arguments, options,
                      result)

    def grow(self, tensor: torch.Tensor) -> None:
        """Counts a storage that was resized in place at its largest size."""
        record = self.storages[self.storage_of(tensor)]
        record.bytes = max(record.bytes, tensor.untyped_storage().nbytes())

    @staticmethod
    def written_arguments(signature: Signature, call: Call) -> set[str]:
        if signature.kernel in WRITES_STATISTICS and call.attributes.get("training"):
            return {"running_mean", "running_var"}
        return signature.written

    def add_node(self, operator: torch._ops.OpOverload, signature: Signature, call: Call,
                 reads: list[View], writes: list[View], positions: list[str],
                 arguments: tuple[Any, ...], options: dict[str, Any], result: Any) -> None:
        origin = self.origin()
        node = NodeRecord(
            kernel=signature.kernel, phase=self.phases.phase, layer=origin[0], place=origin[1],
            reads=reads, writes=writes, arguments=",".join(call.names),
            results=joined_positions(positions), attributes=call.attributes,
            flops=flops_of(operator, arguments, options, result),
            recomputed=self.is_recomputed(), accumulates=self.accumulates(),
            micro_batch=self.micro_batch)
        self.step.nodes.append(node)
        self.updates.note(writes, in_module=bool(self.modules.stack))
        self.saved.node_was_recorded(node, [name for name, _ in call.tensors])

    def is_recomputed(self) -> bool:
        """Whether a forward call runs within backward, as in a checkpointed region."""
        return (self.phases.phase == "backward" and torch.is_grad_enabled() and
                torch._C._current_autograd_node() is not None)

    def accumulates(self) -> bool:
        """Whether the engine is putting a gradient into a parameter's .grad."""
        if self.phases.phase != "backward":
            return False
        running = torch._C._current_autograd_node()
        return running is not None and running.name().endswith("AccumulateGrad")

    def origin(self) -> tuple[str, str]:
        """(layer, place) of the call; in backward, of the forward call whose gradient it computes."""
        phase = self.phases.phase
        if phase == "backward" and not self.is_recomputed():
            running = torch._C._current_autograd_node()
            if running is not None:
                found = self.origins_of_graph().get(running._sequence_nr())
                if found is not None:
                    self.last_origin = found
            return self.last_origin
        if phase == "update":
            return ("", place())
        found = (self.modules.path or ("loss" if phase == "loss" else ""), place())
        self.last_origin = found
        number = torch.autograd._get_sequence_nr() - 1
        if phase != "backward":
            self.origins.setdefault(number, found)
        elif self.reentrant:
            self.origins_again[number] = found
        return found

    def origins_of_graph(self) -> dict[int, tuple[str, str]]:
        """Of the autograd graph that runs. A region that runs again makes a graph of its own, which
        only a reentrant checkpoint runs backward; else forward's own is run."""
        return self.origins_again if self.reentrant else self.origins
