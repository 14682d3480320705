"""The live storage bytes of whole training steps, operator by operator.

Every operator that reaches the dispatcher below autograd is one event. A storage is counted from
the operator that returned it until its last reference is gone (a finalizer on the storage). What a
kernel allocates and frees inside itself (workspaces, internal copies) is not seen.

Three corrections. Where a tensor has several users, the autograd engine sums their gradients, in place
if it holds the only reference to the first. While a dispatch mode is active it never does, so the
mode does it in the engine's stead (`engine_sum`); the profiler, which needs no mode, confirms the
same choice: in place at residual additions and inside GELU, out of place at concatenations and at
GPT-2's tied embedding, whose first gradients are views. A linear layer of an input that does not lie
contiguously adds its bias in place (`adds_bias_of_linear`). And a gradient's formula writes into the
zeros that it has made, and masks what it has selected, in place (`written_in_place`).
"""

import contextlib
import dataclasses
import gc
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

ALLOCATION_UNIT = 512

OPTIMIZERS = {
    "sgd": lambda p, **options: torch.optim.SGD(p, lr=1e-3, **options),
    "sgd-momentum": lambda p, **options: torch.optim.SGD(p, lr=1e-3, momentum=0.9, **options),
    "adam": lambda p, **options: torch.optim.Adam(p, lr=1e-3, **options),
    "adamw": lambda p, **options: torch.optim.AdamW(p, lr=1e-3, **options),
}


@dataclasses.dataclass(frozen=True)
class Loop:
    """How the training loop is written. `micro_batches` forward and backward passes, all on the
    same inputs, come before each update; each adds its share of the loss to the gradients."""

    micro_batches: int = 1
    set_to_none: bool = True
    in_backward: bool = False  # hooks update each parameter
    optimizer_options: dict = dataclasses.field(default_factory=dict)


USES_OF_AN_UNSHARED_STORAGE = 2  # the tensor's own and the one of its Python wrapper


def rounded(size):
    """The bytes that PyTorch's CUDA allocator counts for a request."""
    return -(-size // ALLOCATION_UNIT) * ALLOCATION_UNIT


def engine_sum(first, second):
    """The engine's sum of two gradients: (result, operator)."""
    uses = torch._C._storage_Use_Count(first.untyped_storage()._cdata)
    if first._is_view() or uses > USES_OF_AN_UNSHARED_STORAGE:
        return torch.ops.aten.add.Tensor(first, second), "engine: aten.add.Tensor"
    return torch.ops.aten.add_.Tensor(first, second), "engine: aten.add_.Tensor"


def adds_bias_of_linear(func, args, last):
    """Whether this is linear's addition of its bias to a product of more than two axes, made of an
    input that is not contiguous. It is in place, but not for subclasses of Tensor, as fake ones are
    (ATen/native/Linear.cpp)."""
    return (func is torch.ops.aten.add.Tensor and last == "aten._unsafe_view" and
            isinstance(args[1], torch.Tensor) and args[1].dim() == 1 and args[0].dim() > 2)


# Formulas in FunctionsManual.cpp and derivatives.yaml that ask areAnyTensorSubclassLike() first: of
# fake tensors they make a new result. The profiler, which needs no mode, shows the in-place forms.
IN_PLACE = {
    ("aten.new_zeros", torch.ops.aten.scatter.src): torch.ops.aten.scatter_.src,
    ("aten.zeros", torch.ops.aten.scatter.src): torch.ops.aten.scatter_.src,
    ("aten.new_zeros", torch.ops.aten.scatter_add.default): torch.ops.aten.scatter_add_.default,
    ("aten.new_zeros", torch.ops.aten.index_add.default): torch.ops.aten.index_add_.default,
    ("aten.new_zeros", torch.ops.aten.index_put.default): torch.ops.aten.index_put_.default,
    ("aten.where.self", torch.ops.aten.masked_fill.Scalar): torch.ops.aten.masked_fill_.Scalar,
}


LOOKING_ON = ("aten.lt.Tensor", "aten.gt.Tensor", "aten.detach", "aten.unsqueeze")


def written_in_place(func, args, kwargs, last):
    """The result of a formula's step that is in place though fake tensors' is not; None: it is
    another."""
    overwriting = IN_PLACE.get((last, func))
    return None if overwriting is None else torch.ops.aten.alias(overwriting(*args, **kwargs))


class StorageTrace(TorchDispatchMode):
    """Counts storages of one device type. `events` are [step, phase, operator, allocated, freed,
    live]: `live` is right after the allocations, `freed` are the releases until the next event."""

    def __init__(self, device_type):
        super().__init__()
        self.device_type = device_type
        self.sizes = {}
        self.live = 0
        self.live_rounded = 0
        self.step, self.phase = 0, "load"
        self.events = []
        self.freed = []
        self.last_formula = ""
        self.peaks = {}

    def count(self, tensor):
        """Count the tensor's storage if it is new; returns its bytes or None."""
        if tensor.device.type != self.device_type:
            return None
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self.sizes:
            return None
        self.sizes[key] = size
        self.live += size
        self.live_rounded += rounded(size)
        weakref.finalize(storage, self.release, key).atexit = False
        return size

    def release(self, key):
        size = self.sizes.pop(key)
        self.live -= size
        self.live_rounded -= rounded(size)
        self.freed.append(size)

    def settle(self):
        """Book the releases so far on the last event."""
        if self.events:
            self.events[-1][4] = self.freed
        self.freed = []

    def observe(self, operator, tensors):
        allocated = [size for size in map(self.count, tensors) if size is not None]
        self.events.append([self.step, self.phase, operator, allocated, [], self.live])
        peak = self.peaks.setdefault((self.step, self.phase), dict(bytes=-1, op="", rounded=-1))
        if self.live > peak["bytes"]:
            peak.update(bytes=self.live, op=operator)
        peak["rounded"] = max(peak["rounded"], self.live_rounded)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace in ("prim", "profiler"):
            return func(*args, **(kwargs or {}))
        self.settle()
        # A checkpointed region that runs again within backward has gradients enabled.
        engine = self.phase == "backward" and not torch.is_grad_enabled()
        if engine and func is torch.ops.aten.add.Tensor:
            result, operator = engine_sum(*args)
        elif self.phase == "forward" and adds_bias_of_linear(func, args, self.events[-1][2]):
            operator = "aten.add_.Tensor"
            result = torch.ops.aten.alias(torch.ops.aten.add_.Tensor(*args))
        else:
            operator = str(func).removesuffix(".default")
            result = written_in_place(func, args, kwargs or {}, self.last_formula) if engine else None
            if result is None:
                result = func(*args, **(kwargs or {}))
        if operator not in LOOKING_ON:
            self.last_formula = operator
        self.observe(operator, [t for t in tree_iter(result) if isinstance(t, torch.Tensor)])
        return result

    def enter_phase(self, step, phase):
        """Start a phase; its first event is the state that it starts from."""
        self.settle()
        self.step, self.phase = step, phase
        self.observe(f"[{phase}]", [])


def train(reference, model, inputs, target, optimizer, trace, backward_context, loop):
    """Two steps of the usual loop: as in a script, `output` and `loss` live until overwritten."""
    for step in (1, 2):
        for _ in range(loop.micro_batches):
            trace.enter_phase(step, "forward")
            output, loss = reference.loss(model, inputs, target)
            if loop.micro_batches > 1:
                loss = loss / loop.micro_batches
            trace.enter_phase(step, "backward")
            with backward_context():
                loss.backward()
        trace.enter_phase(step, "optimizer")
        optimizer.step()
        trace.enter_phase(step, "zero_grad")
        optimizer.zero_grad(set_to_none=loop.set_to_none)
    trace.settle()


def run(reference, model, inputs, target, optimizer_name,
        backward_context=contextlib.nullcontext, loop=Loop(), trace_class=StorageTrace):
    """Trace two steps; returns the finished StorageTrace."""
    gc.collect()
    trace = trace_class(target.device.type)
    if loop.in_backward:
        import memory_savers

        optimizer = memory_savers.optimizer_in_backward(model.parameters(),
                                                        OPTIMIZERS[optimizer_name])
    else:
        optimizer = OPTIMIZERS[optimizer_name](model.parameters(), **loop.optimizer_options)
    trace.observe("[parameters and buffers]", [*model.parameters(), *model.buffers()])
    trace.observe("[input and target]", [*tree_iter(inputs), target])
    gc.disable()
    try:
        with trace:
            train(reference, model, inputs, target, optimizer, trace, backward_context, loop)
    finally:
        gc.enable()
        if loop.in_backward:
            optimizer.remove()
    return trace


def step_peak(trace, step):
    """(peak, phase) of a step; the phase's entry holds the operator."""
    entries = [(peak["bytes"], phase) for (s, phase), peak in trace.peaks.items() if s == step]
    size = max(bytes for bytes, _ in entries)
    return size, next(phase for bytes, phase in entries if bytes == size)


def summary(trace):
    """The figures of one optimizer."""
    after_load, with_inputs = trace.events[0][5], trace.events[1][5]
    step1, _ = step_peak(trace, 1)
    step2, phase = step_peak(trace, 2)
    phases = {name: {"peak": trace.peaks[2, name]["bytes"], "op": trace.peaks[2, name]["op"]}
              for name in ("forward", "backward", "optimizer")}
    starts = {e[2].strip("[]"): e[5] for e in trace.events if e[0] == 2 and e[2].startswith("[")}
    return {
        "after_load": after_load,
        "inputs": with_inputs - after_load,
        "step1_peak": step1,
        "step2_peak": step2,
        "step2_peak_op": trace.peaks[2, phase]["op"],
        "step2_peak_phase": phase,
        "step2_peak_rounded_512": max(p["rounded"] for (s, _), p in trace.peaks.items() if s == 2),
        "step2_phases": phases,
        "step2_starts": {name: starts[name] for name in ("forward", "backward", "optimizer")},
        "optimizer_ops": sorted({e[2] for e in trace.events if e[:2] == [2, "optimizer"]
                                 and not e[2].startswith("[")}),
    }
