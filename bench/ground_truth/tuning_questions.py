"""fine_tuning.py's cases in the words of `stowage check`, and its answers, part by part."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import stowage
import tuning_models
from stowage import Prediction, Refusal
from tuning_cases import Case

_PARTS = ("prefill", "decode")


@dataclass(frozen=True)
class Versions:
    """Of the software whose step it is, as X.Y."""

    pytorch: str
    transformers: str
    cuda: str


@dataclass(frozen=True)
class Answer:
    """One question. By part: `step`, or `prefill` and `decode`; the bytes of a cache."""

    parts: dict[str, Prediction]
    cache_bytes: int | None
    refusal: Refusal | None


def short(version: str) -> str:
    """2.11.0+cu130 is 2.11."""
    return ".".join(version.split("+")[0].split(".")[:2])


def _checkpoint_configuration(case: Case) -> dict:
    """The configuration, with what transformers writes into it of torchao's weights."""
    content = tuning_models.configuration(case)
    if case.torchao:
        name, settings = case.torchao_settings()
        content["quantization_config"] = {
            "quant_method": "torchao",
            "quant_type": {"default": {"_type": name, "_version": 2, "_data": settings}}}
    return content


def write_configuration(case: Case, folder: str) -> str:
    """The case's config.json in a folder of its own; returns that folder."""
    own = os.path.join(folder, case.file_name())
    os.makedirs(own, exist_ok=True)
    with open(os.path.join(own, "config.json"), "w", encoding="utf-8") as file:
        json.dump(_checkpoint_configuration(case), file, indent=1)
    return own


def arguments(case: Case, versions: Versions, folder: str) -> list[str]:
    """What `check` is asked about the case as a description; `folder`: for its configuration."""
    hub = case.from_hub()
    words = [write_configuration(case, folder) if hub else case.model.rpartition("/")[2]]
    words += ["--pytorch-version", versions.pytorch, "--cuda-version", versions.cuda,
              "--precision", case.precision]
    words += ["--set", f"transformers={versions.transformers}"] if hub else []
    words += (["--optimizer", "adamw", "--mode", "train"] if case.training()
              else ["--mode", "inference"])
    words += ["--checkpoint"] if case.checkpoint else []
    words += ["--lora", case.lora] if case.lora else []
    words += ["--base", case.base] if case.base else []
    words += ["--set", f"attention={case.attention}"] if case.attention else []
    return words + (_served(case) if case.cache else _sizes(case))


def _sizes(case: Case) -> list[str]:
    return ["--batch", str(case.batch), *(["--seq", str(case.seq)] if case.seq else [])]


def _served(case: Case) -> list[str]:
    words = ["--context-length", str(case.seq), "--users", str(case.batch), "--cache", case.cache]
    return words + (["--seq", str(case.encoder_seq)] if case.encoder_seq else [])


def recorded_arguments(case: Case, versions: Versions, recordings: str) -> list[str] | None:
    """The same of its recorded step; None where there is none."""
    path = os.path.join(recordings, case.file_name() + ".json")
    if not case.record or not os.path.exists(path):
        return None
    return [path, "--batch", str(case.batch), "--pytorch-version", versions.pytorch,
            "--cuda-version", versions.cuda]


def answer(program: stowage.Program, words: list[str]) -> Answer:
    content = program.content(words)
    if isinstance(content, Refusal):
        return Answer({}, None, content)
    served = "serving" in content
    parts = {part: stowage.prediction(content[part]) for part in _PARTS} if served else {
        "step": stowage.prediction(content)}
    refusal = next((part for part in parts.values() if isinstance(part, Refusal)), None)
    if refusal:
        return Answer({}, None, refusal)
    return Answer(parts, content["serving"]["kv_cache_bytes"] if served else None, None)
