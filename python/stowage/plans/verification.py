"""Compares what happens in a step with the plan that is applied, and names the first difference.

The plan says for each storage after which call its copy begins, before which it is let go and before
which it is fetched; how many tensors a pass saves, where it checkpoints nothing; and what memory the
step takes.
"""

from __future__ import annotations

import collections
import time
from typing import TYPE_CHECKING

import torch

from stowage.errors import StowageError
from stowage.plans.applied import HOOKS, Applied
from stowage.plans.events import BACK, OUT, Event
from stowage.plans.plan_file import Offload, PlanLike, read_plan

if TYPE_CHECKING:
    from types import TracebackType


def passes_of(events: list[Event]) -> list[list[Event]]:
    """The events of each pass, in order. Those before the first pass are left out."""
    passes: list[list[Event]] = []
    for event in events:
        if event.what == "pass":
            passes.append([])
        elif passes:
            passes[-1].append(event)
    return passes


def place_of(events: list[Event], what: str, key: str) -> int | None:
    """The first such event's place."""
    return next((place for place, event in enumerate(events)
                 if event.what == what and event.key == key), None)


class Verification:
    """`with Verification(plan) as found: step()`. Afterwards `seconds` (on CUDA until the device is
    done), `bytes_out`, `bytes_back`, `passes`, `saved` (tensors with keys in the first pass), on CUDA
    also `peak_allocated` and `peak_reserved` (bytes); `difference` is the first one, "" where there is
    none."""

    def __init__(self, plan: PlanLike) -> None:
        self.plan = read_plan(plan)
        self.events: list[Event] = []
        self.seconds = 0.0
        self.bytes_out = self.bytes_back = self.passes = self.saved = 0
        self.peak_allocated: int | None = None
        self.peak_reserved: int | None = None
        self.difference = ""

    def applied(self) -> Applied:
        """The plan at work in this thread."""
        for one in reversed(HOOKS.applied):
            if one.plan == self.plan:
                return one
        raise StowageError(f"{self.plan.source} is not applied in this thread",
                           "stowage.apply(model, optimizer, plan) comes first")

    @property
    def is_on_gpu(self) -> bool:
        return self.at_work.device_type() == "cuda" and torch.cuda.is_initialized()

    def __enter__(self) -> Verification:
        self.at_work = self.applied()
        self.at_work.events.watchers.append(self.events)
        self.fell_back = self.at_work.fell_back
        if self.is_on_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        self.begun = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None,
                 _traceback: TracebackType | None) -> None:
        if kind is None and self.is_on_gpu:
            torch.cuda.synchronize()
            self.peak_allocated = torch.cuda.max_memory_allocated()
            self.peak_reserved = torch.cuda.max_memory_reserved()
        self.seconds = time.perf_counter() - self.begun
        watchers = self.at_work.events.watchers
        watchers[:] = [one for one in watchers if one is not self.events]
        passes = passes_of(self.events)
        self.passes = len(passes)
        self.saved = sum(event.what == "pack" for event in passes[0]) if passes else 0
        self.bytes_out = sum(event.bytes for event in self.events if event.what in OUT)
        self.bytes_back = sum(event.bytes for event in self.events if event.what in BACK)
        if kind is not None:
            return
        self.difference = self.first_difference(passes)
        if self.difference:
            raise StowageError(f"the step differs from {self.plan.source}: {self.difference}")

    def first_difference(self, passes: list[list[Event]]) -> str:
        if not passes and self.plan.trains:
            return "it saves no tensor for backward"
        if self.at_work.fell_back > self.fell_back:
            return (f"{self.at_work.fell_back - self.fell_back} tensors fell back: "
                    f"{self.at_work.first_reason}")
        for number, events in enumerate(passes):
            where = f"pass {number + 1} of {len(passes)}: " if len(passes) > 1 else ""
            difference = self.of_calls(events) or self.of_storages(events)
            if difference:
                return where + difference
        return self.of_streams(len(passes)) or self.of_updates() or self.of_memory()

    def of_calls(self, events: list[Event]) -> str:
        packed = [event.key for event in events if event.what == "pack"]
        if self.plan.checkpoint:  # the recording's calls include those of the modules that run again
            return ""
        for planned, key in zip(self.plan.first_keys, packed):
            if planned != key:
                return f"it saves {key} where the plan has {planned}"
        if self.plan.saved_calls is not None and self.plan.saved_calls != len(packed):
            return f"it saves {len(packed)} tensors, and the plan has {self.plan.saved_calls}"
        return ""

    def of_storages(self, events: list[Event]) -> str:
        for entry in self.plan.offload:
            difference = self.of_storage(entry, events)
            if difference:
                return difference
        return ""

    def of_storage(self, entry: Offload, events: list[Event]) -> str:
        """The order of one storage's events against the calls that the plan names."""
        name = entry.start
        started, released, fetched = (place_of(events, what, name)
                                      for what in ("start", "release", "fetch"))
        if started is None:
            return f"{name} did not leave"
        if released is None:
            return f"{name} left and was not let go"
        if fetched is None:
            return f"{name} left and did not come back"
        if entry.release is not None and released > (call := self.call(events, "pack", entry.release)):
            return f"{name} was let go after {entry.release} was saved" if call >= 0 else (
                f"{entry.release}, at which {name} is let go, was not saved")
        if entry.fetch is not None:
            call = self.call(events, "unpack", entry.fetch)
            if call < 0:
                return f"{entry.fetch}, at which {name} is fetched, was not needed in backward"
            if fetched < call:
                return f"{name} was fetched before {entry.fetch} was needed"
            if any(event.what != "fetch" for event in events[call + 1:fetched]):
                return f"{name} was fetched after {entry.fetch} was needed"
        return ""

    @staticmethod
    def call(events: list[Event], what: str, key: str) -> int:
        """The place where that call's own storages have been moved; -1: there was no such call."""
        place = place_of(events, what, key)
        if place is None:
            return -1
        while what == "pack" and place + 1 < len(events) and events[place + 1].what == "release":
            place += 1
        return place

    def of_streams(self, passes: int) -> str:
        """Every block's parameters come as often in each pass; an inference may be called several
        times."""
        counts = collections.Counter(event.key for event in self.events if event.what == "upload")
        for streamed in self.plan.stream:
            first = self.plan.stream[0]
            times = passes if self.plan.trains else max(counts[first.module] // first.uploads, 1)
            if counts[streamed.module] != times * streamed.uploads:
                return (f"the parameters of {streamed.module} came {counts[streamed.module]} times, and "
                        f"the plan has {times * streamed.uploads}")
        return ""

    def of_updates(self) -> str:
        """Which gradients went to the host, and which updates came as gradients did."""
        came = {what: {event.key for event in self.events if event.what == what}
                for what in ("gradient", "parameter", "update")}
        if self.plan.gradients_in_flight is not None:
            for name in (*self.plan.cpu_parameters, *sorted(came["gradient"])):
                if name not in came["gradient"]:
                    return f"the gradient of {name} did not go to the host"
                if name not in came["parameter"]:
                    return f"{name} did not come back from the host"
            if not came["gradient"]:
                return "no gradient went to the host"
        if self.plan.early_updates:
            late = sorted(came["gradient"] - came["update"])
            if late:
                reason = self.at_work.updates.late_reason or "early updates begin with the second step"
                return (f"{late[0]} was updated in optimizer.step(), and not as its gradient came: "
                        f"{reason}")
            if not came["update"]:
                return "no parameter was updated as its gradient came"
        return ""

    def of_memory(self) -> str:
        for word, measured, planned in (("allocated", self.peak_allocated, self.plan.peak_allocated),
                                        ("reserved", self.peak_reserved, self.plan.peak_reserved)):
            if measured is not None and planned is not None and measured > planned:
                return f"its peak of {word} memory is {measured} bytes, and the plan's {planned}"
        return ""


