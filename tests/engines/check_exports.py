#!/usr/bin/env python3
"""Has the files that `stowage export` writes read by the programs for which they are written.

    python tests/engines/check_exports.py build/stowage [--llama-source DIR] [--torchtitan-02 DIR]

Each program's own configuration classes read the file, from PyPI's packages: deepspeed, accelerate,
transformers and trl, torchtitan (0.3's options; 0.2's JobConfig from DIR, where `pip install
--target DIR torchtitan==0.2.2` put it), axolotl, megatron-core. Of llama.cpp the names of options
are looked up in the text of common/arg.cpp (DIR: the unpacked source of llama-cpp-python); its parser
is not run. What is not installed is said and not counted as read. Exit code 1: a file was refused, or
read as something else than was written. `.ci/full engines` makes the environment.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Reader = Callable[[Path, dict[str, Any]], None]

LLAMA = ["llama-3-8b", "--gpu", "h100-80gb", "--batch", "2", "--seq", "2048"]
SHARDED = [*LLAMA, "--gpus", "8", "--accumulation", "4"]
TUNED = [
    "llama-3-8b",
    "--gpu",
    "rtx4090",
    "--batch",
    "1",
    "--seq",
    "2048",
    "--precision",
    "bf16",
    "--lora",
    "r=16,alpha=32,dropout=0.05,targets=q_proj+v_proj",
    "--base",
    "nf4",
    "--checkpoint",
]


# {form: (the package that reads it, how its file's name ends)}
PROGRAMS = {
    "deepspeed": ("deepspeed", ".json"),
    "fsdp": ("accelerate", ".yaml"),
    "accelerate": ("accelerate", ".yaml"),
    "trl": ("trl", ".yaml"),
    "axolotl": ("axolotl", ".yaml"),
    "torchtitan": ("torchtitan", ".toml"),
    "megatron": ("megatron-core", ".sh"),
    "llama.cpp": ("", ".sh"),
    "tensorflow": ("", ".py"),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """What is exported, by whose reader it is read, and what that has to find."""

    form: str
    words: list[str]
    read: Reader
    wanted: dict[str, Any]
    package: str | None = None  # None: the form's; "": none is asked for
    ending: str | None = None  # as above

    @property
    def of_package(self) -> str:
        return PROGRAMS[self.form][0] if self.package is None else self.package

    @property
    def file_ending(self) -> str:
        return PROGRAMS[self.form][1] if self.ending is None else self.ending


class Unread(Exception):
    """The program is not installed."""


def expect(what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise AssertionError(f"{what} is read as {found!r}, not {wanted!r}")


def read_deepspeed(path: Path, wanted: dict[str, Any]) -> None:
    from unittest import mock

    from deepspeed.runtime.config import DeepSpeedConfig

    class DataParallel:
        """The launcher's groups: all GPUs are data-parallel."""

        @staticmethod
        def get_data_parallel_world_size() -> int:
            return int(wanted["gpus"])

    with mock.patch("deepspeed.runtime.config.dist.get_rank", return_value=0):
        config = DeepSpeedConfig(str(path), mpu=DataParallel())
    text = json.loads(path.read_text())
    expect("the micro-batch", config.train_micro_batch_size_per_gpu, wanted["batch"])
    expect("the accumulation", config.gradient_accumulation_steps, wanted["accumulation"])
    expect("the stage", int(config.zero_config.stage), wanted["zero"])
    expect("bf16", config.bfloat16_config.enabled, text["bf16"]["enabled"])
    extra = config.zero_config.model_extra or {}
    expect("unknown keys of zero_optimization", list(extra), [])
    offload = config.zero_config.offload_optimizer
    expect("offload_optimizer", offload is not None and offload.device == "cpu", wanted["offload"])


def read_accelerate(path: Path, wanted: dict[str, Any]) -> None:
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils import FullyShardedDataParallelPlugin
    from accelerate.utils.launch import prepare_multi_gpu_env

    config = load_config_from_file(str(path))
    expect("the processes", config.num_processes, wanted["gpus"])
    expect("the kind", str(config.distributed_type.value), wanted["kind"])
    expect("the precision", config.mixed_precision, wanted["precision"])
    parser = launch_command_parser()
    arguments = parser.parse_args(["--config_file", str(path), "script.py"])
    arguments, _, _ = _validate_launch_command(arguments)
    if wanted["kind"] == "DEEPSPEED":
        expect("the stage", int(arguments.zero_stage), wanted["zero"])
    if wanted["kind"] != "FSDP":
        return
    arguments.main_process_port = 29500
    environment = prepare_multi_gpu_env(arguments)
    kept = dict(os.environ)
    os.environ.update({key: str(value) for key, value in environment.items()})
    try:
        plugin = FullyShardedDataParallelPlugin()
        plugin.set_mixed_precision(config.mixed_precision)
    finally:
        os.environ.clear()
        os.environ.update(kept)
    expect("FSDP's version", plugin.fsdp_version, 2)
    expect("reshard_after_forward", plugin.reshard_after_forward, True)
    expect("activation_checkpointing", plugin.activation_checkpointing, wanted["checkpoint"])
    expect("the offload", type(plugin.cpu_offload).__name__, wanted["offload"])
    expect("reduce_dtype", str(plugin.mixed_precision_policy.reduce_dtype), "torch.bfloat16")


def read_device_map(path: Path, wanted: dict[str, Any]) -> None:
    import torch
    from accelerate.utils.modeling import check_device_map

    text = json.loads(path.read_text())
    root = torch.nn.Module()
    for name in wanted["parameters"]:
        *modules, own = name.split(".")
        module = root
        for part in modules:
            if part not in dict(module.named_children()):
                module.add_module(part, torch.nn.Module())
            module = module.get_submodule(part)
        module.register_parameter(own, torch.nn.Parameter(torch.zeros(1)))
    check_device_map(root, text["device_map"])
    for name in wanted["parameters"]:
        rules = [
            key for key in text["device_map"] if name == key or name.startswith(key + ".") or not key
        ]
        expect(f"the rules of {name}", len(rules), 1)


def read_trl(path: Path, wanted: dict[str, Any]) -> None:
    from trl import ModelConfig, SFTConfig, TrlParser

    arguments = ["--config", str(path), "--use_cpu", "--output_dir", tempfile.mkdtemp()]
    training, model = TrlParser((SFTConfig, ModelConfig)).parse_args_and_config(arguments)
    expect("the batch", training.per_device_train_batch_size, wanted["batch"])
    expect("the length", training.max_length, 2048)
    expect("gradient_checkpointing", training.gradient_checkpointing, True)
    expect("optim", str(getattr(training.optim, "value", training.optim)), wanted["optim"])
    expect("the adapters' rank", model.lora_r, 16)
    expect("the targets", model.lora_target_modules, ["q_proj", "v_proj"])
    expect("the base", (model.load_in_4bit, model.bnb_4bit_quant_type), (True, "nf4"))


def read_sharded_trl(path: Path, wanted: dict[str, Any]) -> None:
    from trl import ModelConfig, SFTConfig, TrlParser

    arguments = ["--config", str(path), "--use_cpu", "--output_dir", tempfile.mkdtemp()]
    training, _ = TrlParser((SFTConfig, ModelConfig)).parse_args_and_config(arguments)
    expect("bf16", training.bf16, wanted.get("bf16", True))
    expect("FSDP", bool(training.fsdp), not wanted["zero"])
    if wanted["zero"]:
        expect("the stage", training.deepspeed["zero_optimization"]["stage"], wanted["zero"])
        expect("the rate", training.deepspeed["optimizer"]["params"]["lr"], "auto")
    else:
        expect("the checkpoints", training.fsdp_config["activation_checkpointing"], True)


def read_axolotl(path: Path, wanted: dict[str, Any]) -> None:
    import yaml
    from axolotl.utils.schemas.config import AxolotlInputConfig

    text = yaml.safe_load(path.read_text())
    own = {"base_model": "model", "learning_rate": 1e-4, "datasets": [{"path": "data", "type": "alpaca"}]}
    config = AxolotlInputConfig(**text, **own)
    unknown = sorted(set(text) - set(AxolotlInputConfig.model_fields))
    expect("unknown keys", unknown, [])
    expect("the batch", config.micro_batch_size, wanted["batch"])
    expect("the length", config.sequence_len, wanted["length"])
    expect("the adapter", config.adapter, wanted["adapter"])


def read_torchtitan(path: Path, wanted: dict[str, Any]) -> None:
    from torchtitan.config import ConfigManager

    lines = path.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if "0.3 takes the same as options" in line)
    flags: list[str] = []
    for line in lines[first + 1 :]:
        if not line.startswith("#   "):
            break
        flags += shlex.split(line[1:])
    arguments = ["--module", "llama3", "--config", "llama3_debugmodel", *flags]
    config = ConfigManager().parse_args(arguments)
    expect("the batch", config.training.local_batch_size, wanted["batch"])
    expect("the shards", config.parallelism.data_parallel_shard_degree, wanted["gpus"])
    expect("the checkpoints", type(config.activation_checkpoint).__qualname__, "FullAC.Config")
    expect("the optimizer", config.optimizer.implementation, "foreach")


TORCHTITAN_02 = """
import sys
from torchtitan.config import ConfigManager
config = ConfigManager().parse_args(["--job.config_file", sys.argv[1]])
print(config.training.local_batch_size, config.parallelism.data_parallel_shard_degree,
      config.activation_checkpoint.mode, config.optimizer.implementation)
"""


def read_job_config(folder: str) -> Reader:
    def read(path: Path, wanted: dict[str, Any]) -> None:
        if not folder:
            raise Unread("torchtitan 0.2 (--torchtitan-02)")
        environment = os.environ | {"PYTHONPATH": folder}
        run = [sys.executable, "-c", TORCHTITAN_02, str(path)]
        done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(done.stderr.strip().splitlines()[-1])
        expect(
            "the job",
            done.stdout.split()[-4:],
            [str(wanted["batch"]), str(wanted["gpus"]), "full", "foreach"],
        )

    return read


def shell_words(path: Path, array: str) -> list[str]:
    """What a shell that reads the file has in its array."""
    script = f'. "$1" && printf "%s\\n" "${{{array}[@]}}"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(path)], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def options_of(words: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for i, word in enumerate(words):
        if word.startswith("-"):
            value = words[i + 1] if i + 1 < len(words) and not words[i + 1].startswith("-") else "true"
            options[word] = value
    return options


def read_megatron(path: Path, wanted: dict[str, Any]) -> None:
    import dataclasses

    from megatron.core.distributed import DistributedDataParallelConfig
    from megatron.core.optimizer import OptimizerConfig
    from megatron.core.transformer import TransformerConfig

    # Fields of megatron-core; the others are options of the training script, which PyPI does not have.
    of_script = {
        "micro_batch_size",
        "global_batch_size",
        "seq_length",
        "accumulate_allreduce_grads_in_fp32",
    }
    options = {
        key[2:].replace("-", "_"): value
        for key, value in options_of(shell_words(path, "MEGATRON_ARGS")).items()
    }
    classes = (TransformerConfig, OptimizerConfig, DistributedDataParallelConfig)
    fields = {cls: {field.name: field for field in dataclasses.fields(cls)} for cls in classes}
    unknown = [
        name
        for name in options
        if name not in of_script and not any(name in own for own in fields.values())
    ]
    expect("unknown options", unknown, [])
    sizes = {"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    typed = {
        name: True if value == "true" else int(value) if value.isdigit() else value
        for name, value in options.items()
        if name in fields[TransformerConfig]
    }
    config = TransformerConfig(**sizes, **typed)
    expect("the recomputation", config.recompute_granularity, wanted["recompute"])
    sharded = {
        name: value for name, value in options.items() if name in fields[DistributedDataParallelConfig]
    }
    DistributedDataParallelConfig(
        **{name: True if value == "true" else value for name, value in sharded.items()}
    )


def read_llama(source: str) -> Reader:
    def read(path: Path, wanted: dict[str, Any]) -> None:
        if not source:
            raise Unread("llama.cpp (--llama-source)")
        parser = (Path(source) / "vendor/llama.cpp/common/arg.cpp").read_text()
        known = set(re.findall(r'"(--?[a-zA-Z][a-zA-Z0-9-]*)"', parser))
        options = options_of(shell_words(path, "LLAMA_ARGS"))
        expect("unknown options", sorted(set(options) - known), [])
        expect("the context", options["-c"], wanted["context"])
        expect("the layers", options["-ngl"], wanted["layers"])

    return read


def read_tensorflow(path: Path, wanted: dict[str, Any]) -> None:
    """The file as Python, with what it takes of TensorFlow put in its place."""
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)  # noqa: S102

    class Operation:
        name = "gradient_tape/model/fc1/MatMul"

    expect("the device of fc1", names["place"](Operation), names["LAYERS"]["fc1"])
    expect("the limit", names["MEMORY_LIMIT_MIB"], wanted["limit"])


def version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def parameters_of(plan: Path) -> list[str]:
    """The parameters and buffers of a plan: those that its step's file lists."""
    step = plan.read_text().split("\n---\n")[-1]
    return [row[0] if isinstance(row, list) else row["name"] for row in json.loads(step)["parameters"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--llama-source", default="")
    parser.add_argument("--torchtitan-02", default="")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())

    def made(name: str, words: list[str]) -> Path:
        path = folder / name
        subprocess.run([given.program, "plan", *words, "-o", str(path)], check=True, capture_output=True)
        return path

    inference = made(
        "inference.yaml",
        ["vgg16", "--mode", "inference", "--batch", "8", "--budget", "600MiB", "--placement", "weights"],
    )
    training = made("training.yaml", ["mnist-cnn", "--batch", "64", "--budget", "8MiB"])
    hooked = made(
        "hooked.yaml",
        [
            *("gpt2", "--for", "pytorch", "--batch", "2", "--gpu-memory", "3300MiB"),
            *("--precision", "amp-bf16", "--optimizer", "adamw", "--choose", "cpu-optimizer-checkpoint"),
        ],
    )
    zero = {"batch": 2, "accumulation": 4, "gpus": 8}
    fsdp = {"gpus": 8, "kind": "FSDP", "precision": "bf16"}
    titan = {"batch": 2, "gpus": 8}
    titan_words = [*SHARDED, "--fsdp", "--precision", "mixed-bf16", "--checkpoint"]
    mixed, bf16 = ["--precision", "mixed-bf16"], ["--precision", "bf16"]
    offload, served = ["--offload", "all"], ["--precision", "bf16", "--gpu", "rtx4090"]
    on_host = ["--zero", "2", "--offload", "optimizer"]
    cases = [
        Case("deepspeed", [*SHARDED, "--zero", "3", *offload, *bf16], read_deepspeed,
             zero | {"zero": 3, "offload": True}),
        Case("deepspeed", [*SHARDED, "--zero", "2", "--precision", "amp-bf16"], read_deepspeed,
             zero | {"zero": 2, "offload": False}),
        Case("deepspeed", [*SHARDED, "--precision", "fp32", "--optimizer", "momentum"], read_deepspeed,
             zero | {"zero": 0, "offload": False}),
        Case("deepspeed", [*LLAMA, *on_host, *bf16], read_deepspeed,
             {"batch": 2, "accumulation": 1, "gpus": 1, "zero": 2, "offload": True}),
        Case("deepspeed", [str(hooked)], read_deepspeed,
             {"batch": 2, "accumulation": 1, "gpus": 1, "zero": 2, "offload": True}),
        Case("fsdp", [*SHARDED, "--fsdp", *mixed, "--checkpoint"], read_accelerate,
             fsdp | {"checkpoint": True, "offload": "OffloadPolicy"}),
        Case("accelerate", [*SHARDED, "--fsdp", *mixed, *offload], read_accelerate,
             fsdp | {"checkpoint": False, "offload": "CPUOffloadPolicy"}),
        Case("accelerate", [*SHARDED, "--zero", "3", *bf16], read_accelerate,
             {"gpus": 8, "kind": "DEEPSPEED", "precision": "bf16", "zero": 3}),
        Case("accelerate", [*SHARDED, "--precision", "amp-bf16"], read_accelerate,
             {"gpus": 8, "kind": "MULTI_GPU", "precision": "bf16"}),
        Case("accelerate", [str(hooked)], read_accelerate,
             {"gpus": 1, "kind": "DEEPSPEED", "precision": "bf16", "zero": 2}),
        Case("accelerate", [str(inference)], read_device_map, {"parameters": parameters_of(inference)},
             ending=".json"),
        Case("trl", TUNED, read_trl, {"batch": 1, "optim": "adamw_torch"}),
        Case("axolotl", TUNED, read_axolotl, {"batch": 1, "length": 2048, "adapter": "qlora"}),
        Case("trl", [*SHARDED, "--fsdp", *mixed, "--checkpoint"], read_sharded_trl, {"zero": 0}),
        Case("trl", [*SHARDED, "--zero", "3", *bf16, *offload], read_sharded_trl, {"zero": 3}),
        # DeepSpeed's own section says autocast.
        Case("trl", [str(hooked)], read_sharded_trl, {"zero": 2, "bf16": False}),
        Case("axolotl", [*SHARDED, "--fsdp", *mixed], read_axolotl,
             {"batch": 2, "length": 2048, "adapter": None}),
        Case("axolotl", [*SHARDED, "--zero", "2", *bf16], read_axolotl,
             {"batch": 2, "length": 2048, "adapter": None}),
        Case("axolotl", [str(hooked)], read_axolotl, {"batch": 2, "length": 1024, "adapter": None}),
        Case("torchtitan", titan_words, read_torchtitan, titan),
        Case("torchtitan", titan_words, read_job_config(given.torchtitan_02), titan, package=""),
        Case("megatron", [*SHARDED, "--zero", "1", *mixed, "--checkpoint"], read_megatron,
             {"recompute": "full"}),
        Case("megatron", [*SHARDED, "--zero", "3", *mixed, "--offload", "optimizer"], read_megatron,
             {"recompute": None}),
        Case("llama.cpp", ["llama-3-8b", "--context-length", "8192", "--users", "2", *served],
             read_llama(given.llama_source), {"context": "16384", "layers": "33"}),
        Case("llama.cpp", ["mixtral-8x7b", "--base", "nf4", "--context-length", "4096", *served],
             read_llama(given.llama_source), {"context": "4096", "layers": "33"}),
        Case("tensorflow", [str(training)], read_tensorflow, {"limit": 8}),
    ]
    failed = 0
    for number, case in enumerate(cases):
        form, words, package = case.form, case.words, case.of_package
        path = folder / f"{number}{case.file_ending}"
        done = subprocess.run(
            [given.program, "export", *words, "--to", form, "-o", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        result = "read"
        try:
            if done.returncode not in (0, 1):
                raise AssertionError(done.stderr.strip())
            if package and not version_of(package):
                raise Unread(package)
            case.read(path, case.wanted)
        except Unread as missing:
            result = f"unread: {missing} is not there"
        except Exception as error:  # a reader's own refusal is of any class
            result = f"REFUSED: {type(error).__name__}: {error}"
            failed += 1
        version = version_of(package) if package else ""
        print(f"{form:11} {version:8} {result}  ({' '.join(words[:1] + words[-4:])})", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
