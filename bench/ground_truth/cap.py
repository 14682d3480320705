"""A limit on the caching allocator, and how PyTorch is given it. No torch here.

PyTorch can cap only its allocator, as a fraction of the card. A job says what it is held to either as
the allocator's own bytes (`cap_allocator_bytes`) or as the device's (`cap_bytes`); from the latter what
lies outside the allocator is taken off first.
"""

from __future__ import annotations

import math


def fraction_for(limit_bytes: int, total_bytes: int) -> float:
    """The smallest fraction whose share of the card, cut to whole bytes as PyTorch does, is the limit.

    The plain quotient may come out a byte short, and an allocator that needs exactly the limit, which
    is a multiple of 2 MiB as its segments are, would then be refused its last one.
    """
    fraction = min(1.0, limit_bytes / total_bytes)
    while fraction < 1.0 and int(fraction * total_bytes) < limit_bytes:
        fraction = math.nextafter(fraction, 1.0)
    return fraction


def outside_allocator(spec: dict, context: dict) -> tuple[int, str]:
    """(bytes, where they are from): `overhead_bytes` of the spec, else what the context took."""
    if spec.get("overhead_bytes") is not None:
        return spec["overhead_bytes"], "given"
    held, reserved = context["process_device_bytes"], context["reserved_bytes"]
    if held is None:
        return 0, "unknown, taken as 0"
    return held - reserved, "context"


def apply(job, spec: dict, meter, context: dict, recorder) -> None:
    """Caps the allocator as the job says, and records what was used; nothing if it says nothing."""
    if job.cap_allocator_bytes is not None:
        cap = {"allocator_limit_bytes": job.cap_allocator_bytes}
    elif job.cap_bytes is not None:
        overhead, source = outside_allocator(spec, context)
        cap = {"device_bytes": job.cap_bytes, "overhead_bytes": overhead, "overhead_source": source,
               "allocator_limit_bytes": max(0, job.cap_bytes - overhead)}
    else:
        return
    recorder.save(cap=cap)
    cap["fraction"] = meter.cap(cap["allocator_limit_bytes"])
    recorder.save(cap=cap)
