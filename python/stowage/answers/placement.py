"""Answers of `plan`: what to keep on the host, and what that costs."""

from __future__ import annotations

import dataclasses
from typing import Any, Generic, TypeVar

from stowage.answers.common import Answer
from stowage.errors import StowageError


@dataclasses.dataclass(frozen=True)
class Proposal:
    """A plan for Stowage's own executor. `pcie_lower_bound_bytes` and `step_lower_bound_seconds`: no plan
    of its kind has less; `in_words`: what it does."""

    name: str
    gpu_peak_bytes: int
    budget_bytes: int
    host_peak_bytes: int
    pageable_peak_bytes: int
    h2d_bytes: int
    d2h_bytes: int
    pcie_bytes: int
    pcie_lower_bound_bytes: int
    cost_seconds: float
    cost_lower_bound_seconds: float
    gap: float | None
    overhead_gap: float | None
    proved_optimal: bool
    step_seconds: float
    all_gpu_step_seconds: float
    step_lower_bound_seconds: float | None
    step_gap: float | None
    arena_bytes: int
    arena_lower_bound_bytes: int
    micro_batches: int
    nodes_on_cpu: int
    in_words: str
    remarks: list[str]
    validation: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class PytorchProposal:
    """A plan that `stowage.apply` carries out (`for_="pytorch"`)."""

    name: str
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    device_bytes: int
    d2h_bytes: int
    h2d_bytes: int
    pcie_bytes: int
    pcie_lower_bound_bytes: int
    pinned_bytes: int
    step_seconds: float
    all_gpu_step_seconds: float
    recomputed_seconds: float
    step_lower_bound_seconds: float | None
    step_gap: float | None
    batch: int
    micro_batches: int
    chunks: int
    changes_training: bool
    offloaded_storages: int
    checkpoint: list[str]
    streamed: list[str]
    streamed_bytes: int
    optimizer_on_cpu: bool
    cpu_parameters: list[str]
    early_updates: bool
    environment: dict[str, str]
    in_words: str
    remarks: list[str]


P = TypeVar("P", Proposal, PytorchProposal)


@dataclasses.dataclass(frozen=True)
class PlanDevice:
    """The card that is planned for; without sizes where only a budget was given. `available_bytes`: of a
    process; `allocator_bytes`: of PyTorch's allocator, beside what CUDA and its libraries take."""

    name: str | None
    total_bytes: int | None
    available_bytes: int | None = None
    allocator_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class PlanAnswer(Answer, Generic[P]):
    """`stowage.plan`. `chosen` names one of `plans`, which has been written where `output` was given;
    None: nothing fits, and `enough` says which card would do, where that is known."""

    plans: list[P]
    chosen: str | None
    device: PlanDevice | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    enough: dict[str, Any] | None = None

    @property
    def best(self) -> P:
        """The chosen one of `plans`. Raises StowageError where nothing fits."""
        for plan in self.plans:
            if plan.name == self.chosen:
                return plan
        raise StowageError("no plan fits the card")
