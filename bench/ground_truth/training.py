"""One training set-up and its step: precision, optimizer, order of operations. No measuring here.

The step, in order: a random batch is made on the device; gradients are set to None; forward and loss
(under autocast where asked); backward; update. The batch and the loss live until the step ends; how
long the network's output lives is the job's `outputs`.
"""

from __future__ import annotations

import contextlib
import sys

import torch

import models
from matrix import Job
from quick_weights import RepeatedBlocks

_AMP = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}
_RATE = 1e-4


def set_flags(job: Job, threads: int | None = None) -> None:
    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = job.cudnn_benchmark
    if job.tf32 != "default":
        torch.backends.cudnn.allow_tf32 = job.tf32 == "on"
        torch.backends.cuda.matmul.allow_tf32 = job.tf32 == "on"


def flags() -> dict:
    """What PyTorch says is in force; None where this version does not tell."""
    def ask(get):
        try:
            return get()
        except (AttributeError, RuntimeError):
            return None
    return {"cudnn_allow_tf32": ask(lambda: torch.backends.cudnn.allow_tf32),
            "matmul_allow_tf32": ask(lambda: torch.backends.cuda.matmul.allow_tf32),
            "cudnn_benchmark": ask(lambda: torch.backends.cudnn.benchmark),
            "cudnn_deterministic": ask(lambda: torch.backends.cudnn.deterministic),
            "flash_sdp": ask(torch.backends.cuda.flash_sdp_enabled),
            "mem_efficient_sdp": ask(torch.backends.cuda.mem_efficient_sdp_enabled),
            "cudnn_sdp": ask(torch.backends.cuda.cudnn_sdp_enabled)}


def network_on_device(job: Job, device: str) -> torch.nn.Module:
    """Built on the CPU, then moved: the device sees the weights and nothing else."""
    with RepeatedBlocks():
        network = models.build(job).train()
    if job.precision == "bf16":
        network = network.to(torch.bfloat16)
    if job.channels_last:
        network = network.to(memory_format=torch.channels_last)
    return network.to(device)


def _optimizer(job: Job, parameters) -> torch.optim.Optimizer:
    name, _, implementation = job.optimizer.partition(":")
    kind, options = {"sgd": (torch.optim.SGD, {}),
                     "sgd-momentum": (torch.optim.SGD, {"momentum": 0.9}),
                     "adam": (torch.optim.Adam, {}),
                     "adamw": (torch.optim.AdamW, {}),
                     "adagrad": (torch.optim.Adagrad, {}),
                     "rmsprop": (torch.optim.RMSprop, {})}[name]
    forced = {"": {}, "for-loop": {"foreach": False}, "foreach": {"foreach": True},
              "fused": {"fused": True}}[implementation]
    return kind(parameters, lr=_RATE, **options, **forced)


@contextlib.contextmanager
def observed_updates(optimizer: torch.optim.Optimizer):
    """Yields a set that collects which update functions ran: _fused_adam, _multi_tensor_sgd, ...

    Which one PyTorch picks by default changed between versions and changes the peak, so it is watched
    rather than assumed.
    """
    seen, replaced = set(), []
    modules = {sys.modules[kind.__module__] for kind in type(optimizer).__mro__
               if kind.__module__.startswith("torch.optim.") and kind is not torch.optim.Optimizer}
    for module in modules:
        for name, function in list(vars(module).items()):
            if callable(function) and name.startswith(("_fused_", "_multi_tensor_", "_single_tensor_")):
                def watch(*arguments, _name=name, _function=function, **options):
                    seen.add(_name)
                    return _function(*arguments, **options)
                replaced.append((module, name, function))
                setattr(module, name, watch)
    try:
        yield seen
    finally:
        for module, name, function in replaced:
            setattr(module, name, function)


class Trainer:
    """A network with its optimizer; `step` runs one training step."""

    def __init__(self, job: Job, network: torch.nn.Module, device: str):
        self.job, self.network, self.device = job, network, device
        self.optimizer = _optimizer(job, network.parameters())
        self.dtype = torch.bfloat16 if job.precision == "bf16" else torch.float32
        self.scaler = torch.amp.GradScaler(device, enabled=job.precision == "amp-fp16")
        self.skipped_updates = 0  # steps whose fp16 gradients overflowed: the optimizer did not run
        self.steps = 0
        self._kept = None

    def _autocast(self):
        low = _AMP.get(self.job.precision)
        return torch.autocast(self.device, dtype=low) if low else contextlib.nullcontext()

    def step(self) -> None:
        sample, target = models.batch(self.job, self.device, self.dtype)
        self.optimizer.zero_grad(set_to_none=True)
        with self._autocast():
            loss, output = models.loss(self.job, self.network, sample, target)
        if self.job.outputs == "next":
            self._kept = output  # the previous step's output dies only here, after this forward
        elif self.job.outputs == "drop":
            del output
        scale = self.scaler.get_scale() if self.scaler.is_enabled() else None
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if scale is not None and self.scaler.get_scale() < scale:
            self.skipped_updates += 1
        self.steps += 1

    def optimizer_state_bytes(self) -> int:
        """Tensors in the optimizer's state, by their sizes, wherever they live."""
        return sum(value.nbytes for state in self.optimizer.state.values()
                   for value in state.values() if isinstance(value, torch.Tensor))
