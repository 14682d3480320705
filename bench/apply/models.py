#!/usr/bin/env python3
"""Plans for PyTorch, carried out for many models: what moves, what falls back, what lives, which bits.

    PYTHONPATH=python python bench/apply/models.py [NAME...] [--section S] [--scripts FOLDER] > table.md

Each model is recorded, planned for a card that leaves the allocator a share of what the step reserves,
rehearsed on the pretended device, and trained for two steps on the CPU with and without the plan. A row
is printed as it is made; it runs in a process of its own, forked from one that has the libraries. Needs
the program (STOWAGE_PROGRAM) and a Python with torch, torchvision, timm, transformers and diffusers.
--scripts: see public_scripts.py.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import warnings
from typing import TYPE_CHECKING, Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(pathlib.Path(__file__).resolve().parent)]
PROGRAM = os.environ.get("STOWAGE_PROGRAM", str(ROOT / "build/stowage"))

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    Values = list[torch.Tensor]

# Plans of several micro-batches are of a model's step: one that a script's function runs is as it is.
MICRO_BATCHES = "micro-batch-"
SCRIPTS = ("pytorch/examples:mnist/main.py", "karpathy/minGPT:projects/chargpt/chargpt.py")
# {section: (name, share of what the step reserves, which plan; "": the chosen one)}
SECTIONS: dict[str, list[tuple[str, float, str]]] = {
    "torchvision": [(f"torchvision:{name}", 0.7, "") for name in (
        "resnet18", "resnet50", "vgg11_bn", "densenet121", "mobilenet_v2", "efficientnet_b0",
        "convnext_tiny", "swin_t", "vit_b_16", "regnet_y_400mf")],
    "timm": [(f"timm:{name}", 0.7, "") for name in (
        "convnext_atto", "deit_tiny_patch16_224", "resnetv2_50", "efficientnetv2_rw_t", "mixer_b16_224",
        "regnety_002", "repvgg_a0", "dpn48b", "poolformer_s12", "levit_128s")],
    "transformers with Trainer": [(f"Trainer:{name}", 0.8, "") for name in (
        "gpt2", "bert", "roberta", "distilbert", "t5", "opt", "llama", "qwen2")],
    "diffusion": [(f"diffusers:{name}", 0.8, "") for name in (
        "UNet2DModel", "UNet2DConditionModel", "DiTTransformer2DModel")],
    "scripts": [(SCRIPTS[0], 0.85, ""), (SCRIPTS[1], 0.8, "")],
    "shares": [("torchvision:resnet50", 0.5, ""), ("timm:convnext_atto", 0.5, ""),
               ("transformers:gpt2", 0.5, ""), ("Trainer:bert", 0.6, ""),
               ("diffusers:UNet2DConditionModel", 0.5, ""), (SCRIPTS[1], 0.5, ""),
               ("timm:deit_tiny_patch16_224", 0.5, MICRO_BATCHES)]}
HEADER = """\
| model | share | plan | each way | fell back | peak of living tensors | planned | on the CPU |
|---|---|---|---|---|---|---|---|"""
BATCH, CPU_BATCH, STEPS = 16, 2, 2


class Failed(Exception):
    pass


class LibraryModel:
    """A model of a library, in a loop of our own (one_model.py)."""

    optimizer: str | None = None  # that the program has to add to the recording
    batch = BATCH

    def __init__(self, name: str) -> None:
        import one_model

        self.name, self.module = name, one_model

    def record(self, path: str, which: str) -> None:
        import stowage

        model, optimizer = self.module.built(self.name, "cpu")
        inputs, target = self.module.batch_of(self.name, BATCH, 0, "cpu")
        if which == MICRO_BATCHES:
            stowage.record(model, inputs["x"], target=target, loss=self.module.loss_of,
                           optimizer=optimizer, output=path)
            return
        stowage.record(self.module.train_step, (model, optimizer, inputs, target), output=path)

    def started(self, device: str, batch: int, parts: int) -> tuple[Any, Any, Callable[[], Any]]:
        model, optimizer = self.module.built(self.name, device)
        inputs, target = self.module.batch_of(self.name, batch, 0, device)
        return model, optimizer, lambda: self.module.train_step(model, optimizer, inputs, target, parts)

    def rehearsed(self, plan: Any) -> Any:
        import stowage

        return stowage.rehearse(lambda: self.started("cuda", BATCH, plan.micro_batches), plan)

    def trained(self, plan: Any, like: Any) -> tuple[Values, Any]:
        """([losses, parameters, buffers], the Applied). `like`: the plan, of a run without it."""
        import torch

        import stowage

        parts = like.micro_batches
        model, optimizer, step = self.started("cpu", max(CPU_BATCH, parts), parts)
        applied = stowage.apply(model, optimizer, plan) if plan is not None else None
        torch.manual_seed(1)
        losses = [step() for _ in range(STEPS)]
        if applied is not None:
            applied.remove()
        return [*losses, *model.state_dict().values()], applied


class TrainerModel:
    """A script with transformers' Trainer (trainer_script.py)."""

    optimizer = "adamw"
    batch = 64

    def __init__(self, name: str) -> None:
        import trainer_script

        self.kind, self.module = name.partition(":")[2], trainer_script

    def record(self, path: str, _which: str) -> None:
        from stowage.options import RecordOptions
        from stowage.script import record_script

        record_script(str(self.module.__file__), None, RecordOptions(),
                      [self.kind, "--batch", str(self.batch)]).save(path)

    def rehearsed(self, plan: Any) -> Any:
        """Of what Trainer runs in a step: training_step, clipping, the optimizer, zero_grad."""
        import torch

        import stowage

        def build() -> tuple[Any, Any, Callable[[], Any]]:
            trainer = self.module.trainer_of(self.kind, folder, self.batch, STEPS)
            trainer.current_gradient_accumulation_steps = 1
            optimizer = trainer.create_optimizer()
            batch = next(iter(trainer.get_train_dataloader()))

            def step() -> None:
                trainer.training_step(trainer.model, batch)
                torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), trainer.args.max_grad_norm)
                optimizer.step()
                trainer.model.zero_grad()

            return trainer.model, optimizer, step

        with tempfile.TemporaryDirectory() as folder:
            return stowage.rehearse(build, plan)

    def trained(self, plan: Any, _like: Any) -> tuple[Values, Any]:
        found: tuple[Values, Any] = self.module.trained(self.kind, plan, CPU_BATCH, STEPS)
        return found


class PublicScriptModel:
    """A script of a public repository (public_scripts.py)."""

    optimizer: str | None = None

    def __init__(self, name: str, scripts: str, folder: str) -> None:
        import public_scripts

        self.module = public_scripts
        self.script = next(one for one in public_scripts.SCRIPTS if one.name == name)
        self.batch = self.script.batch
        self.place = public_scripts.copied(self.script, scripts, folder)
        self.repository = pathlib.Path(folder) / "repository"
        public_scripts.write_data(self.place)

    def words(self, batch: int) -> list[str]:
        return [word.format(batch=batch) for word in self.script.words]

    def record(self, path: str, _which: str) -> None:
        import script_hooks

        from stowage.options import RecordOptions
        from stowage.script import record_script

        script_hooks.begin(script_hooks.RECORD)
        words = self.words(self.batch)
        with self.module.script_place(self.place, self.repository, words):
            record_script(str(self.place), None, RecordOptions(), words).save(path)
        self.forget()

    def forget(self) -> None:
        """Modules of the repository are imported anew in the next run."""
        for name in [name for name, one in sys.modules.items()
                     if str(getattr(one, "__file__", "")).startswith(str(self.repository))]:
            del sys.modules[name]

    def ran(self, way: str, batch: int, plan: Any = None) -> Any:
        import script_hooks

        run = script_hooks.begin(way, plan)
        with self.module.script_place(self.place, self.repository, self.words(batch)):
            self.module.run_script(self.place)
        self.forget()
        return run

    def rehearsed(self, plan: Any) -> Any:
        import stowage

        def build() -> tuple[Any, Any, Callable[[], Any]]:
            run = self.ran("rehearse", self.batch)
            return run.model, run.optimizer, run.first_step

        return stowage.rehearse(build, plan)

    def trained(self, plan: Any, _like: Any) -> tuple[Values, Any]:
        run = self.ran("train", CPU_BATCH, plan)
        if run.applied is not None:
            run.applied.remove()
        return run.values(), run.applied


def model_of(name: str, scripts: str, folder: str) -> Any:
    if name in SCRIPTS:
        if not scripts:
            raise Failed("not run: --scripts FOLDER says where it is")
        return PublicScriptModel(name, scripts, folder)
    return TrainerModel(name) if name.startswith("Trainer:") else LibraryModel(name)


def program(*words: str) -> Any:
    done = subprocess.run([PROGRAM, *words, "--format", "json"], text=True, capture_output=True,
                          check=False)
    if done.returncode not in (0, 1):
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise Failed(" ".join(lines[-12:])[-300:] or f"exit code {done.returncode}")
    return json.loads(done.stdout)


def planned(model: Any, folder: str, share: float, which: str) -> tuple[str, Any]:
    """(the plan's name, the plan). Raises Failed where none fits."""
    import stowage

    step, file = f"{folder}/s.json", f"{folder}/p.json"
    model.record(step, which)
    more = ["--optimizer", model.optimizer] if model.optimizer else []
    sized = program("check", step, "--gpu-memory", "200GiB", *more)
    memory = sized["device_bytes"] - int((1 - share) * sized["peak"]["reserved_bytes"])
    words = ["plan", step, "--for", "pytorch", "--gpu-memory", f"{memory}B", "-o", file, *more]
    shown = program(*words)
    name = shown["chosen"]
    if which:
        name = next((row["name"] for row in shown["plans"] if row["name"].startswith(which)), None)
    if name is None:
        raise Failed("no such plan fits")
    if which:
        program(*words, "--choose", name)
    return name, stowage.read_plan(file)


def mib(size: int) -> str:
    return f"{size / 2 ** 20:,.1f} MiB"


def equal(ours: Values, theirs: Values) -> bool:
    import torch

    return len(ours) == len(theirs) and all(torch.equal(one, other) for one, other in zip(ours, theirs))


def row_of(name: str, share: float, which: str, scripts: str) -> str:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = model_of(name, scripts, folder)
        chosen, plan = planned(model, folder, share, which)
        found = model.rehearsed(plan)
        wanted = plan.update_bytes + plan.micro_batches * plan.offloaded_bytes(
            model.batch // plan.micro_batches)
        exact = found.bytes_out == found.bytes_back == wanted
        moved = mib(wanted) if exact else f"{found.bytes_out} out, {found.bytes_back} back of {wanted}"
        fell = str(found.fell_back) + (f" ({found.first_reason})" if found.first_reason else "")
        peak = mib(found.peak_bytes)
        if found.peak_bytes > plan.peak_allocated:
            peak = f"ABOVE: {peak}"
        unplanned, _ = model.trained(None, plan)
        values, applied = model.trained(plan, plan)
        cpu = (f"{'equal bits' if equal(unplanned, values) else 'DIFFERENT'}, {mib(applied.bytes_out)} "
               f"moved, {applied.fell_back} fell back")
        return (f"| {name.partition(':')[2]} | {share:g} | {chosen} | {moved} | {fell} | {peak} | "
                f"{mib(plan.peak_allocated)} | {cpu} |")


def shown_row(name: str, share: float, which: str, scripts: str) -> str:
    """In a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                row = row_of(name, share, which, scripts)
        except BaseException as error:
            traceback.print_exc()
            message = str(error).strip() or "no message"
            kind = "" if isinstance(error, Failed) else f"{type(error).__name__}: "
            row = (f"| {name.partition(':')[2]} | {share:g} | failed: {kind}"
                   f"{' '.join(message.split())[:300]} | | | | | |")
        with os.fdopen(writer, "w") as pipe:
            pipe.write(row)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        row = pipe.read()
    os.waitpid(child, 0)
    return row or f"| {name} | {share:g} | failed: the process ended | | | | | |"


def versions() -> str:
    found = []
    for name in ("torch", "torchvision", "timm", "transformers", "accelerate", "diffusers"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name).partition('+')[0]}")
    return ", ".join(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="as torchvision:resnet18; all, if none is named")
    parser.add_argument("--section", choices=SECTIONS, action="append", default=[])
    parser.add_argument("--scripts", default="", metavar="FOLDER", help="clones of public repositories")
    options = parser.parse_args()
    print(versions())
    for section, rows in SECTIONS.items():
        rows = [row for row in rows if not options.names or row[0] in options.names]
        if not rows or (options.section and section not in options.section):
            continue
        for library in {"transformers with Trainer": ("trainer_script",)}.get(section, ("one_model",)):
            importlib.import_module(library)
        for library in ("torchvision", "timm"):
            if any(row[0].startswith(library) for row in rows):
                importlib.import_module(library)
        print(f"\n{section[0].upper() + section[1:]}:\n\n{HEADER}", flush=True)
        for name, share, which in rows:
            print(shown_row(name, share, which, options.scripts), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
