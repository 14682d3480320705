"""Reads memory and time on a device. `CudaMeter` measures; `DryMeter` answers None to everything."""

from __future__ import annotations

import statistics

import torch

import cap
import card
import nvml

# The fields of a snapshot. All are bytes but the method and the two counts.
FIELDS = ("allocated_bytes", "reserved_bytes", "max_allocated_bytes", "max_reserved_bytes",
          "max_requested_bytes", "process_device_bytes", "process_device_method",
          "device_used_bytes", "cuda_free_bytes", "cuda_total_bytes", "alloc_retries", "ooms")


class DryMeter:
    """For dry runs on the CPU: every code path, no figure. Nothing is estimated or made up."""

    device = "cpu"

    def before(self) -> dict:
        return {"device_used_bytes": None, "other_processes": None}

    def context(self) -> dict:
        return self.snapshot()

    def snapshot(self) -> dict:
        return dict.fromkeys(FIELDS)

    def reset_peaks(self) -> None:
        pass

    def timed(self, step, count: int) -> dict:
        for _ in range(count):
            step()
        return {"median_ms": None, "minimum_ms": None, "maximum_ms": None, "steps": count}

    def cap(self, limit_bytes: int) -> None:
        return None


class CudaMeter:
    """For cuda:0. Make it before anything touches CUDA; it notes what the device holds by then.

    `uuid` names the GPU to the driver, since CUDA_VISIBLE_DEVICES renumbers; None means that it could
    not be told, and then only a machine with a single GPU is read. `alone`: no other job is running.
    """

    device = "cuda"

    def __init__(self, uuid: str | None, alone: bool = True):
        reader = nvml.open_reader(uuid) if uuid else _only_gpu()
        self.process = nvml.ProcessMemory(reader, alone=alone)

    def before(self) -> dict:
        others = self.process.processes_before
        return {"device_used_bytes": self.process.used_before,
                "other_processes": None if others is None else len(others)}

    def context(self) -> dict:
        """A snapshot with the context and one tensor of four bytes; the tensor is gone afterwards.

        The tensor makes the allocator hold one segment of 2 MiB: it is in `reserved_bytes`.
        """
        torch.cuda.init()
        tensor = torch.zeros(1, device="cuda")
        snapshot = self.snapshot()
        del tensor
        torch.cuda.empty_cache()
        return snapshot

    def snapshot(self) -> dict:
        torch.cuda.synchronize()
        stats = torch.cuda.memory_stats()
        free, total = torch.cuda.mem_get_info()
        used, method = self.process.read()
        values = (torch.cuda.memory_allocated(), torch.cuda.memory_reserved(),
                  torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(),
                  stats.get("requested_bytes.all.peak"), used, method, self.process.device_used(),
                  free, total, stats.get("num_alloc_retries"), stats.get("num_ooms"))
        return dict(zip(FIELDS, values))

    def reset_peaks(self) -> None:
        torch.cuda.reset_peak_memory_stats()

    def timed(self, step, count: int) -> dict:
        """Runs the steps back to back; the times are between CUDA events around each."""
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        marks[0].record()
        for mark in marks[1:]:
            step()
            mark.record()
        torch.cuda.synchronize()
        times = [start.elapsed_time(end) for start, end in zip(marks, marks[1:])]
        return {"median_ms": statistics.median(times), "minimum_ms": min(times),
                "maximum_ms": max(times), "steps": count}

    def cap(self, limit_bytes: int) -> float:
        """Lets the caching allocator hold at most `limit_bytes`; returns the fraction that was set."""
        fraction = cap.fraction_for(limit_bytes, torch.cuda.mem_get_info()[1])
        torch.cuda.set_per_process_memory_fraction(fraction)
        return fraction


def _only_gpu():
    reader, _ = card.reader_for_first_gpu(torch)
    return reader
