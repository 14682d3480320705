"""JSON Schemas of what the commands print that Python has no call for: `stowage COMMAND --format json`.

What `check`, `batch`, `plan` and `diff` of two steps print is in answer_schemas.py, made from the
dataclasses of python/stowage/answers.
"""

from __future__ import annotations

from file_schemas import BYTES, DRAFT, RATE, TEXT, TEXTS, TRUTH, Schema, list_of, map_of, record, words

NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


DIAGNOSTIC = record({"severity": words("note", "warning", "error"), "message": TEXT,
                     "file": or_null(TEXT), "line": or_null(WHOLE), "column": or_null(WHOLE),
                     "hint": or_null(TEXT), "notes": TEXTS})


def answer(members: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """The members that every answer has, and these."""
    return record({"schema_version": {"const": 1}, **members, "notes": list_of(DIAGNOSTIC)}, optional)


def lanes() -> Schema:
    lane = record({"seconds": NUMBER, "planned_seconds": NUMBER})
    return record({name: lane for name in ("step", "gpu", "cpu", "h2d", "d2h")})


def measured() -> Schema:
    sizes = ("gpu_peak_bytes", "planned_gpu_peak_bytes", "arena_high_water_bytes", "planned_arena_bytes",
             "host_high_water_bytes", "planned_host_peak_bytes", "planned_pageable_peak_bytes",
             "h2d_bytes", "planned_h2d_bytes", "d2h_bytes", "planned_d2h_bytes")
    seconds = ("step_seconds", "kernel_seconds", "h2d_seconds", "d2h_seconds", "planned_step_seconds")
    memory = ("total_bytes", "free_before_bytes", "free_loaded_bytes", "free_with_arenas_bytes",
              "free_after_bytes")
    difference = record({"kind": TEXT, "tensors": WHOLE, "unequal": WHOLE, "largest_absolute": NUMBER,
                         "largest_relative": NUMBER, "tolerance": NUMBER})
    return record({
        "backend": TEXT, **{name: BYTES for name in sizes}, "steps": WHOLE, "h2d_copies": WHOLE,
        "d2h_copies": WHOLE, "losses": list_of(or_null(NUMBER)), **{name: NUMBER for name in seconds},
        "lanes": lanes(),
        "device_memory": or_null(record({**{name: BYTES for name in memory},
                                         "nvml_used_bytes": or_null(BYTES)})),
        "differences": list_of(difference)})


def validate() -> Schema:
    check = record({"name": TEXT, "passed": TRUTH, "detail": TEXT, "on": TEXT})
    would_run = record({**{f"{name}_kernels": WHOLE for name in ("own", "cublas", "cudnn", "cpu")},
                        "missing": TEXTS, "h2d_copies": WHOLE, "h2d_bytes": BYTES, "d2h_copies": WHOLE,
                        "d2h_bytes": BYTES, "arena_bytes": BYTES, "pinned_bytes": BYTES,
                        "pageable_bytes": BYTES})
    return answer({"plan": TEXT, "verdict": TEXT, "checks": list_of(check), "ran": TEXTS,
                   "not_run": or_null(TEXT), "measured": or_null(measured()),
                   "would_run": or_null(would_run), "remarks": TEXTS})


def explain() -> Schema:
    placement = record({"name": TEXT, "kind": TEXT, "device": TEXT, "bytes": or_null(BYTES),
                        "cause": TEXT, "pin": or_null(TEXT), "seconds": NUMBER, "reason": TEXT})
    alternative = record({"alternative": TEXT, "cost_seconds": NUMBER, "added_seconds": NUMBER,
                          "h2d_bytes": BYTES, "d2h_bytes": BYTES, "pcie_bytes": BYTES,
                          "gpu_peak_bytes": BYTES, "fits": TRUTH})
    return answer({"plan": TEXT, "name": TEXT, "budget_bytes": BYTES, "placement": list_of(placement),
                   "alternatives": list_of(alternative)})


def plan_diff() -> Schema:
    side = record({"name": TEXT, "step_seconds": NUMBER, "cost_seconds": NUMBER, "h2d_bytes": BYTES,
                   "d2h_bytes": BYTES, "pcie_bytes": BYTES, "arena_bytes": BYTES,
                   "gpu_peak_bytes": BYTES, "host_peak_bytes": BYTES, "budget_bytes": BYTES,
                   "step_hash": TEXT})
    node = record({"device": TEXT, "beside_gpu": TRUTH, "engine": or_null(TEXT),
                   "workspace_bytes": BYTES})
    storage = record({"state": TEXT, "h2d_bytes": BYTES, "d2h_bytes": BYTES})
    counts = record({"nodes": WHOLE, "storages": WHOLE})
    return answer({"same_step": TRUTH, "before": side, "after": side,
                   "nodes": list_of(record({"name": TEXT, "before": node, "after": node})),
                   "storages": list_of(record({"name": TEXT, "bytes": BYTES, "before": storage,
                                               "after": storage})),
                   "only_before": counts, "only_after": counts})


def summary() -> Schema:
    model = record({"name": TEXT, "source": TEXT, "parameters": WHOLE, "trainable_parameters": WHOLE,
                    "parameter_bytes": BYTES, "buffer_bytes": BYTES})
    layer = record({"name": TEXT, "op": TEXT, "output_shape": list_of(WHOLE), "parameters": WHOLE,
                    "flops": RATE, "saved_bytes": BYTES})
    memory = record({"batch": WHOLE, "mode": TEXT, "optimizer": or_null(TEXT),
                     "not_updated": or_null({}), "peak_tensor_bytes": BYTES, "at": or_null(TEXT),
                     "footprint": map_of(BYTES)})
    return answer({"model": model, "batch": WHOLE, "layers": list_of(layer), "memory": or_null(memory)})


def weights() -> Schema:
    total = record({"tensors": WHOLE, "elements": WHOLE, "bytes": BYTES})
    return answer({"weights": TEXT, "kind": TEXT, "files": WHOLE, "bytes": BYTES,
                   "formats": map_of(total)}, {"architecture": or_null(TEXT), "stated": map_of(TEXT)})


def probe() -> Schema:
    link = or_null(record({"generation": WHOLE, "width": WHOLE}))
    process = record({"pid": WHOLE, "name": or_null(TEXT), "bytes": or_null(BYTES)})
    instance = record({"name": TEXT, "uuid": or_null(TEXT), "total_bytes": BYTES, "free_bytes": BYTES})
    gpu = record({"name": TEXT, "uuid": TEXT, "pci_bus_id": TEXT, "compute_capability": NUMBER,
                  "total_bytes": BYTES, "free_bytes": BYTES, "used_bytes": BYTES,
                  "cuda_total_bytes": or_null(BYTES), "cuda_ordinal": or_null(WHOLE),
                  "processes": list_of(process), "mig_instances": list_of(instance), "link": link,
                  "link_at_most": link})
    library = record({"name": TEXT, "version": or_null(TEXT), "file": or_null(TEXT)})
    host = record({"cpu": TEXT, "cores": WHOLE, "memory_bytes": BYTES, "available_bytes": BYTES,
                   "limited_by_control_group": TRUTH, "locked_memory_limit_bytes": or_null(BYTES)})
    texts = ("driver", "cuda", "cudnn", "why_no_gpu", "why_no_cudnn")
    return answer({"gpus": list_of(gpu), **{name: or_null(TEXT) for name in texts},
                   "libraries": list_of(library), "cuda_visible_devices": or_null(TEXT), "host": host})


def models() -> Schema:
    return answer({"models": list_of(record({
        "name": TEXT, "parameters": WHOLE, "trainable_parameters": WHOLE, "operators": WHOLE,
        "source": TEXT}))})


def gpus() -> Schema:
    texts = ("name", "architecture", "total_source", "context_source", "pcie", "rate_source",
             "confidence", "workspace_source")
    sizes = ("nvml_total_bytes", "cuda_total_bytes", "context_bytes")
    rates = ("compute_capability", "memory_bandwidth", "fp32_flops", "tf32_flops", "fp16_flops",
             "h2d_bandwidth", "d2h_bandwidth")
    card = record({**{name: TEXT for name in texts}, **{name: BYTES for name in sizes},
                   **{name: RATE for name in rates}, "sm_count": WHOLE})
    return answer({"gpus": list_of(card)})


def ops() -> Schema:
    attribute = record({"name": TEXT, "type": TEXT, "default": or_null(TEXT), "bounds": TEXT,
                        "doc": TEXT})
    kernel = record({"time": TEXT, "kernel": TEXT, "host": TEXTS, "cuda": TEXTS,
                     "why_nowhere": or_null(TEXT)})
    return answer({"ops": list_of(record({
        "name": TEXT, "doc": TEXT, "min_inputs": WHOLE, "max_inputs": or_null(WHOLE),
        "attributes": list_of(attribute), "is_loss": TRUTH, "autocast": TEXT, "kernel_sets": TEXTS,
        "example": TEXT, "kernels": list_of(kernel)}))})


def export() -> Schema:
    verdict = {"fits": TRUTH, "device_bytes": BYTES, "available_bytes": BYTES, "headroom_bytes": WHOLE,
               "device": TEXT, "settings": {"type": "object"}, "device_bytes_of_all": BYTES}
    return answer({"form": TEXT, "text": TEXT, "not_in_the_file": TEXTS, "beside_the_file": TEXTS,
                   "not_counted": TEXTS}, verdict)


def refusal() -> Schema:
    return record({"schema_version": {"const": 1}, "diagnostics": list_of(DIAGNOSTIC)})


COMMANDS = {
    "validate": (validate(), "stowage validate PLAN --format json"),
    "explain": (explain(), "stowage explain PLAN NAME --format json"),
    "plan-diff": (plan_diff(), "stowage diff PLAN PLAN --format json"),
    "summary": (summary(), "stowage summary MODEL --format json"),
    "weights": (weights(), "stowage summary WEIGHTS --format json"),
    "probe": (probe(), "stowage probe --format json"),
    "models": (models(), "stowage models --format json"),
    "gpus": (gpus(), "stowage gpus --format json"),
    "ops": (ops(), "stowage ops --format json"),
    "export": (export(), "stowage export PLAN|MODEL --to FORM --format json"),
    "refusal": (refusal(), "what a command prints to standard error instead, with --format json"),
}


def command_documents() -> dict[str, Schema]:
    """{file's name: its schema}"""
    return {f"{name}.schema.json": {**DRAFT, "title": title, **schema}
            for name, (schema, title) in COMMANDS.items()}
