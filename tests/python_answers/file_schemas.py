"""JSON Schemas of the files that the program reads and writes: descriptions, and plans of both kinds.

They hold the form of a file, so that an editor can complete and check it; the program's own readers
say more (names that do not exist, sizes that do not go together). A description and the head of a plan
are YAML, held here as the values that a reader of YAML 1.2 makes of them: 5e-5 is a number.
"""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

Schema = dict[str, Any]

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPERATORS = json.loads((ROOT / "python/stowage/export/operators.json").read_text())["ops"]
DRAFT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 1}
BYTES: Schema = {"type": "integer", "minimum": 0, "maximum": 1 << 62}
RATE: Schema = {"type": "number", "minimum": 0}
TEXTS: Schema = {"type": "array", "items": TEXT}
TRUTH: Schema = {"type": "boolean"}
PRECISIONS = ["fp32", "fp64", "fp16", "bf16", "amp-fp16", "amp-bf16", "mixed-fp16", "mixed-bf16"]
DATA_TYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"]
FINE_TUNING = ("lora", "base", "checkpoint", "layer_dtype", "chunked_loss", "offload_activations",
               "optimizer_in_backward")


def words(*choices: str) -> Schema:
    return {"enum": list(choices)}


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """An object of these members and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def list_of(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def map_of(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


def reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


# --- descriptions (docs/model-description.md) ---


def attribute_schema(kind: str) -> Schema:
    """Of an attribute by what it takes, as operators.json says it; a text may be an expression."""
    if kind == "integer":
        return {"type": ["integer", "string"]}
    if kind == "number":
        return {"type": ["number", "string"]}
    if kind == "true or false":
        return {"type": ["boolean", "string"]}
    if kind == "dimensions" or "integer" in kind:
        return reference("sizes")
    return TEXT


def layer_schema() -> Schema:
    operators = {
        row["name"]: {
            "anyOf": [
                {"type": "null"},
                {
                    **reference("layer_keys"),
                    "properties": {
                        each["name"]: attribute_schema(each["type"]) for each in row["attributes"]
                    },
                    "unevaluatedProperties": False,
                },
            ]
        }
        for row in OPERATORS
    }
    return {
        "anyOf": [
            TEXT,
            {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "properties": operators,
                "additionalProperties": {"type": ["object", "null"]},
            },
        ]
    }


NAMES: Schema = {"anyOf": [TEXT, TEXTS]}
LAYER_KEYS: dict[str, Schema] = {
    "name": {"type": "string", "maxLength": 256},
    "from": NAMES,
    "repeat": {"type": ["integer", "string"]},
    "dense": TRUTH,
    "when": {"type": ["boolean", "integer", "string"]},
    "tie": map_of(TEXT),
    "parameter_names": map_of(TEXT),
    "frozen": {"type": ["boolean", "string"]},
    "checkpoint": {"type": ["boolean", "string"]},
    "weight": {"type": ["number", "string"]},  # of a loss
    "precision": words("fp32", "bf16", "fp16", "fp64"),
}


def settings_of_optimizers() -> list[str]:
    """The rows of the table of settings in docs/model-description.md, which the program makes."""
    text = (ROOT / "docs/model-description.md").read_text()
    table = text.split("<!-- optimizers -->")[1].split("| setting | meaning |")[1].split("<!--")[0]
    return re.findall(r"^\| `([a-z0-9_]+)` \|", table, flags=re.MULTILINE)


def train_schema() -> Schema:
    settings: dict[str, Schema] = {
        name: {"type": ["number", "boolean"]} for name in settings_of_optimizers()
    }
    texts = {
        name: {"type": ["string", "boolean", "integer", "object", "array"]}
        for name in FINE_TUNING
    }
    return record(
        {},
        {
            "optimizer": TEXT,
            **settings,
            **texts,
            "implementation": words("default", "for-loop", "foreach", "fused"),
            "loss_in_model": TRUTH,
            "precision": words(*PRECISIONS),
            "accumulation": COUNT,
            "zero_grad": words("to_none", "to_zero"),
            "augment": {"type": "integer", "minimum": 0},
            "prefetch": {"type": "integer", "minimum": 0},
            "layout": words("nchw", "nhwc"),
        },
    )


def description_schema() -> Schema:
    value: Schema = {"type": ["integer", "number", "boolean", "string"]}
    modules = map_of({"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 2}]})
    block = record(
        {"layers": list_of(reference("layer"))},
        {
            "arguments": {
                "anyOf": [{"type": "null"}, map_of({"type": [*value["type"], "array", "null"]})]
            },
            "output": NAMES,
            "modules": modules,
        },
    )
    inputs = map_of(
        record({"shape": list_of({"type": ["integer", "string"]})}, {"dtype": words(*DATA_TYPES)})
    )
    sections: dict[str, Schema] = {
        "model": TEXT,
        "source": TEXT,
        "arguments": map_of(value),
        "symbols": map_of({"type": ["integer", "string"]}),
        "inputs": inputs,
        "defaults": {
            "type": "object",
            "propertyNames": words(*[row["name"] for row in OPERATORS]),
            "additionalProperties": {"type": "object"},
        },
        "blocks": map_of(block),
        "layers": list_of(reference("layer")),
        "output": NAMES,
        "modules": modules,
        "loss": {"anyOf": [reference("layer"), list_of(reference("layer"))]},
        "train": train_schema(),
        "pins": map_of(words("cpu", "gpu")),
    }
    whole = record({key: sections[key] for key in ("model", "inputs", "layers")}, sections)
    based = record(
        {"model": TEXT, "based_on": TEXT},
        {key: sections[key] for key in ("source", "arguments", "symbols")},
    )
    sizes: Schema = {"anyOf": [{"type": ["integer", "string"]}, list_of({"type": ["integer", "string"]})]}
    return {
        **DRAFT,
        "title": "A description of a model, read from YAML (docs/model-description.md)",
        "anyOf": [whole, based],
        "$defs": {
            "layer": layer_schema(),
            "sizes": sizes,
            "layer_keys": {"type": "object", "properties": LAYER_KEYS},
        },
    }


# --- plan files (docs/plan-file.md) ---


def card_schema() -> Schema:
    """The card's record is that of a card file (docs/gpus.md): its figures are not negative."""
    return {
        "type": "object",
        "required": ["name"],
        "properties": {"name": TEXT},
        "additionalProperties": {"anyOf": [RATE, TEXT, TRUTH, {"type": "array"}]},
    }


def head_schema() -> Schema:
    rates = record({name: RATE for name in ("fp64", "fp32", "tf32", "fp16", "bf16")})
    kernels = record(
        {
            "multiprocessors": {"type": "integer", "minimum": 0},
            "formats": rates,
            "kinds": map_of(record({"arithmetic": RATE, "bandwidth": RATE})),
        }
    )
    processor = record(
        {
            "name": TEXT,
            "kind": words("gpu", "cpu"),
            "flops": RATE,
            "bandwidth": RATE,
            "launch": RATE,
            "memory": TEXT,
        },
        {"kernels": kernels},
    )
    memory = record({"name": TEXT, "kind": words("device", "pinned", "pageable")})
    link = record({"name": TEXT, "from": TEXT, "to": TEXT, "bandwidth": RATE, "latency": RATE})
    serving = record(
        {"context_length": COUNT, "users": COUNT, "cache": TEXT, "kv_dtype": TEXT, "kv_block": COUNT},
        {"prefill_chunk": COUNT},
    )
    fine_tuning = record(
        {},
        {
            name: TEXT
            for name in FINE_TUNING
        },
    )
    inputs = record(
        {
            "stowage_version": TEXT,
            "model_name": TEXT,
            "model_hash": TEXT,
            "step_hash": TEXT,
            "batch": COUNT,
            "card": card_schema(),
            "host": card_schema(),
            "available_bytes": BYTES,
            "budget_bytes": BYTES,
        },
        {
            "seq": COUNT,
            "variant": TEXT,
            "set": map_of({"type": ["string", "number", "boolean"]}),
            "precision": words(*PRECISIONS),
            "fine_tuning": fine_tuning,
            "serving": serving,
        },
    )
    totals = record(
        {
            **{
                f"{name}_bytes": BYTES
                for name in (
                    "gpu_peak",
                    "arena",
                    "arena_lower_bound",
                    "host_peak",
                    "h2d",
                    "d2h",
                    "pcie_lower_bound",
                )
            },
            **{
                f"{name}_seconds": RATE
                for name in ("cost", "cost_lower_bound", "all_gpu_cost", "step", "all_gpu_step")
            },
            "proved_optimal": TRUTH,
        },
        {"pageable_peak_bytes": BYTES, "step_lower_bound_seconds": RATE},
    )
    pin = record({"kind": words("asked", "no GPU kernel", "home"), "text": TEXT})
    placements = ["operators", "activations", "optimizer", "weights", "recompute"]
    return record(
        {
            "stowage_plan": {"const": 2},
            "name": TEXT,
            "pinned": words("all nodes", "computation", "nothing"),
            "inputs": inputs,
            "machine": record(
                {"processors": list_of(processor), "memories": list_of(memory), "links": list_of(link)},
                {"measured_on": TEXT},
            ),
            "totals": totals,
        },
        {
            "minimised": words("seconds", "bytes"),
            "placement": {"anyOf": [TEXT, list_of(words(*placements))]},
            "pins": list_of(pin),
            "remarks": TEXTS,
            "model": TEXT,
        },
    )


def plan_schema() -> Schema:
    tables = record(
        {name: TEXT for name in ("nodes", "residences", "transfers")},
        {name: TEXT for name in ("windows", "seconds", "pins", "certificate")},
    )
    return {
        **DRAFT,
        "title": "A plan file as the list of its three YAML documents (docs/plan-file.md)",
        "type": "array",
        "minItems": 3,
        "maxItems": 3,
        "prefixItems": [head_schema(), tables, {"$ref": "../stowage-step.schema.json"}],
    }


# --- plans for PyTorch (docs/apply.md) ---


def pytorch_plan_schema() -> Schema:
    key: Schema = {"type": "string", "pattern": "#[0-9]+$"}
    key_or_null: Schema = {"anyOf": [key, {"type": "null"}]}
    shape = list_of(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": r"^([0-9]+\*)?batch([+-][0-9]+)?$"},
            ]
        }
    )
    saved = record({"key": key, "dtype": words(*DATA_TYPES), "shape": shape})
    offloaded = record(
        {
            "saved": {**list_of(saved), "minItems": 1},
            "bytes": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
            "start": key,
            "release": key_or_null,
            "fetch": key_or_null,
        }
    )
    streamed = record({"module": TEXT, "parameters": TEXTS, "bytes": BYTES, "uploads": COUNT})
    chunks = record({"parts": COUNT, "inputs": list_of(shape), "output": shape})
    on_cpu = record({"gradients_in_flight": COUNT}, {"parameters": TEXTS})
    totals = record(
        {
            **{
                f"{name}_bytes": BYTES
                for name in (
                    "peak_allocated",
                    "peak_reserved",
                    "device",
                    "to_host",
                    "from_host",
                    "pinned",
                    "pcie_lower_bound",
                )
            },
            **{f"{name}_seconds": RATE for name in ("step", "all_gpu_step", "recomputed")},
            "step_lower_bound_seconds": {"anyOf": [RATE, {"type": "null"}]},
        }
    )
    question = record({"model": TEXT, "settings": map_of(TEXTS)})
    return {
        **DRAFT,
        "title": "A plan for PyTorch, version 1 (docs/apply.md)",
        **record(
            {
                "format": {"const": "stowage-pytorch-plan"},
                "version": {"const": 1},
                "written_by": TEXT,
                "model": TEXT,
                "names": words("recorded", "described"),
                "batch": COUNT,
                "micro_batches": COUNT,
                "mode": words("train", "inference"),
                "precision": words(*PRECISIONS),
                "optimizer": TEXT,
                "step": TEXT,
                "gpu": record({"name": TEXT, "available_bytes": BYTES}),
                "pytorch": TEXT,
                "passes": record({"saved": {"type": "integer", "minimum": 0}}),
                "offload": list_of(offloaded),
                "checkpoint": list_of(record({"module": TEXT})),
                "stream": list_of(streamed),
                "chunks": {"anyOf": [chunks, {"type": "null"}]},
                "optimizer_on_cpu": {"anyOf": [on_cpu, {"type": "null"}]},
                "totals": totals,
            },
            {"question": question, "allocator": TEXT, "updates": TEXT},
        ),
    }


def file_documents() -> dict[str, Schema]:
    """{file's name: the schema}"""
    return {
        "model-description.schema.json": description_schema(),
        "plan-file.schema.json": plan_schema(),
        "pytorch-plan.schema.json": pytorch_plan_schema(),
    }
