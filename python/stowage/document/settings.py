"""The settings of a step file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from stowage.trace.record import ModelTensor
    from stowage.training.steps import Recording

# All settings of the optimizers' table (docs/model-description.md), at the values of plain SGD.
OPTIMIZER_SETTINGS = {
    "learning_rate": 0.01, "momentum": 0.0, "nesterov": False, "weight_decay": 0.0, "beta1": 0.9,
    "beta2": 0.999, "epsilon": 1e-8, "dampening": 0.0, "amsgrad": False, "centered": False,
    "decoupled_weight_decay": False, "smoothing": 0.99, "learning_rate_decay": 0.0,
    "momentum_decay": 0.004, "decay_rate": 0.8, "clip_threshold": 1.0, "max_gradient_norm": 1.0}


def optimizer_settings(name: str, settings: dict[str, Any], implementation: str) -> dict[str, Any]:
    values = {}
    for key, default in OPTIMIZER_SETTINGS.items():
        value = settings.get(key, default)
        values[key] = bool(value) if isinstance(default, bool) else float(value)
    return {"name": name, **values, "implementation": implementation, "master_weights": "none"}


def step_settings(torch: ModuleType, optimizer: dict[str, Any], training: bool, micro_batches: int,
                  zero_grad: str, layout: str, capability: tuple[int, int]) -> dict[str, Any]:
    cudnn = torch.backends.cudnn
    return {
        "kernels": "pytorch", "mode": "train" if training else "inference", "optimizer": optimizer,
        "micro_batches": micro_batches, "zero_grad": zero_grad, "augment": 0, "prefetch": 0,
        "layout": layout, "compute_capability": float(f"{capability[0]}.{capability[1]}"),
        "tf32": bool(cudnn.allow_tf32),
        "deterministic": bool(cudnn.deterministic or torch.are_deterministic_algorithms_enabled()),
        "cudnn_benchmark": bool(cudnn.benchmark), "gpus": 1, "zero": 0}


def layout_of(parameters: Sequence[ModelTensor]) -> str:
    """nhwc where a filter lies with its channels innermost, and only so."""
    for _, _, shape, _, view in parameters:
        if len(shape) in (4, 5) and shape[1] > 1 and view.strides[1] == 1 and view.strides[-1] != 1:
            return "nhwc"
    return "nchw"


def precision_of(recording: Recording) -> str:
    """The word for what a user's own function computes in: the format that most of its parameters
    have, or autocast's where it casts float32 parameters down."""
    words = {"float32": "fp32", "float64": "fp64", "float16": "fp16", "bfloat16": "bf16"}
    elements: dict[str | None, int] = {}
    for _, dtype, shape, _, _ in recording.parameters:
        word = words.get(str(dtype).removeprefix("torch."))
        elements[word] = elements.get(word, 0) + math.prod(shape)
    most = max(elements, key=lambda word: elements[word], default=None) or "fp32"
    stored = {row.view.storage for row in recording.parameters}
    for node in recording.steps[1].nodes:
        casts = node.kernel == "aten::_to_copy" and any(v.storage in stored for v in node.reads)
        cast = words.get(str(node.writes[0].dtype).removeprefix("torch.")) if casts else None
        if most == "fp32" and cast in ("fp16", "bf16") and node.phase == "forward":
            return f"amp-{cast}"
    return most
