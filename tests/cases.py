"""What tests/cases.sh runs: each file of a folder, with the command and the outcome that its name states.

    python3 tests/cases.py PROGRAM FOLDER      PROGRAM: the built stowage

A file that the table does not name is checked, validated or recorded, by its content. It must end in an
answer or a refusal: by no signal, with exit code 0, 1 or 2, without a traceback. A run may take 2 s of
the processor and 500 MB; a recording, which starts torch, 60 s and 4 GB. A run is stopped after five
times its seconds by the clock; a run of the program, which is no recording, may address 2 GB.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
GIB = 1 << 30
MB = 1_000_000

Shown = Callable[[str], "str | None"]
"""The value that an output states, on one line; None where it states none, or another."""


class Limits(NamedTuple):
    seconds: float
    megabytes: int
    address_space: int | None


FILE = Limits(2, 500, 2 * GIB)
RECORDING = Limits(60, 4_000, None)


class Run(NamedTuple):
    """One command. `words` begin with a command of stowage, or with `python` and what it is called with;
    {file} is the case, {step} a step file in a folder of the case's own, in which the run happens."""

    words: str
    shows: Shown
    codes: tuple[int, ...] = (0,)
    lacks: str = "\x1b"


class Ended(NamedTuple):
    code: int
    output: str
    wall: float
    processor: float
    megabytes: float
    stopped: bool


def line(pattern: str) -> Shown:
    """The line that matches."""

    def shown(output: str) -> str | None:
        found = re.search(pattern, output)
        if found is None:
            return None
        begin = output.rfind("\n", 0, found.start()) + 1
        end = output.find("\n", found.end())
        return " ".join(output[begin : end if end >= 0 else None].split())

    return shown


def message(pattern: str) -> Shown:
    """The whole output, if it holds what matches."""
    return lambda output: output.strip() if re.search(pattern, output) else None


def weights(low: float, high: float) -> Shown:
    """The first footprint's parameters and buffers, in GiB, within [low, high]."""

    def shown(output: str) -> str | None:
        total = 0.0
        for row in ("parameter", "buffer"):
            found = re.search(rf"^ *([\d.,]+) (MiB|GiB)  {row}$", output, re.MULTILINE)
            if found is None:
                return None
            total += float(found[1].replace(",", "")) / (1024 if found[2] == "MiB" else 1)
        return f"{total:.2f} GiB of weights" if low <= total <= high else None

    return shown


CARD = "--gpu rtx3090"
FITS = line(r"(?m)^fits:.*")
REFUSED = message("error: ")


def recorded(arguments: str, shows: Shown = FITS, check: str = "") -> tuple[Run, ...]:
    """`record`, then `check` of what was written."""
    return (
        Run(f"python -m stowage record {arguments} -o {{step}}", line(r"\d kernels")),
        Run(f"check {{step}} {CARD} {check}", shows),
    )


def refused(command: str, why: str) -> tuple[Run, ...]:
    return (Run(command, message(why), codes=(2,)),)


WITHOUT_CARD = "check {file} --gpu t4"
IN_BYTES = r"error: the \w+ at byte \d+: "
CASES: dict[str, tuple[Run, ...]] = {
    # Refused, or recorded with a warning; then the optimizer's state: two moments of 4096 x 4097.
    "no_optimizer_step.py": (
        Run(
            "python -m stowage record {file} -o {step}",
            message("(error|warning): .*[Oo]ptimizer"),
            (0, 2),
        ),
        Run(f"check {{step}} {CARD}", line("warning: ")),
        Run(f"check {{step}} {CARD} --optimizer adamw", line(r"128\.\d MiB  optimizer state")),
    ),
    "time_major.py": recorded(
        "{file}:build_model --batch 32 --optimizer adam", line(r"713\.1 MiB  tensors")
    ),
    "time_major_script.py": recorded("{file}", line(r"713\.1 MiB  tensors")),
    # At batch 8: tokens [8, 512] of 8 bytes, and one mask [512, 512] of 4.
    "constant_input.py": recorded("{file}:build_model --batch 4", line(r" 1\.0 MiB  input"), "--batch 8"),
    "edges.py": recorded("{file}:build_model", line(r"11\.0 MiB  input")),
    "full_batch.py": recorded("{file}"),
    "batch_one.py": recorded("{file}:build_model --batch 1", line(r"1\.0 MiB  input"), "--batch 16"),
    "looks_at_values.py": recorded("{file}:with_inputs"),
    "lstm_cuda_script.py": recorded("{file}"),
    "script_options.py": (
        Run("python -m stowage record {file} -o {step} -- --epochs 1", line(r"\d kernels")),
        Run(f"check {{step}} {CARD}", FITS),
    ),
    "yolo_script.py": recorded("{file}", line("bound")),
    "escape_in_message.py": refused(
        "python -m stowage record {file} -o {step}", r"error: .*boom \\(x1b|u001b|e|033)\[31m"
    ),
    # Weights of 8 bits, scales and zeros for groups of 128; embedding and head in the file's 16 bits.
    "qwen7b-gptq8.json": (
        Run(
            "check {file} --mode inference --context-length 4096 --gpu rtx4090",
            weights(8.15, 8.45),
            codes=(0, 1),
        ),
    ),
    "bias_constant_gemm.onnx": (
        Run(WITHOUT_CARD, FITS),
        Run("summary {file}", line(r"\b136  544 B  parameters")),
    ),
    "bias_constant_conv.onnx": (
        Run(WITHOUT_CARD, FITS),
        Run("summary {file}", line(r"1,160 .*  parameters")),
    ),
    "onnx_transpose_perm_segv.onnx": refused(WITHOUT_CARD, IN_BYTES),
    "onnx_transpose_perm_heap_read.onnx": refused(WITHOUT_CARD, IN_BYTES),
    "onnx_div_int64min_sigfpe.onnx": refused(WITHOUT_CARD, IN_BYTES),
    "onnx_div_slope_sigfpe.onnx": refused(WITHOUT_CARD, IN_BYTES),
    "onnx_function_memory_bomb.onnx": refused(WITHOUT_CARD, r"error: byte \d+: .* more than \d+ "),
    "onnx_fold_time_5000.onnx": (Run(WITHOUT_CARD, FITS),),
    "yaml_repeat_memory.yaml": refused(WITHOUT_CARD, r":6:5: error: the model has more than \d+ layers"),
    "plan_layer_norm_nobias_rc70.yaml": (Run("plan {file} --gpu rtx3090", line("model checks passed")),),
    "plan_granule_sigfpe.yaml": refused(
        "validate {file} --model-only", r":213:11: error: the granule must be "
    ),
    "plan_adafactor_unreadable.yaml": (Run("validate {file} --model-only", line("valid on paper")),),
    # Steps for compute capability 8.6: a T4 is refused, and a card of 8.6 is not.
    "step_adafactor_refused.json": (
        Run(WITHOUT_CARD, message("error: Tesla T4 has compute capability 7.5: "), (2,)),
        Run(f"check {{file}} {CARD}", FITS),
    ),
    "step_adam_forloop_refused.json": (
        Run(WITHOUT_CARD, message("error: Tesla T4 has compute capability 7.5: "), (2,)),
        Run(f"check {{file}} {CARD}", FITS),
    ),
    # Two storages of one name: stays refused. What `lower` writes of the same settings now is read.
    "step_lamb_inbackward_refused.json": (
        Run(WITHOUT_CARD, message("error: the step: two storages are called "), (2,)),
        Run(
            "lower mlp --optimizer lamb --optimizer-in-backward --compute-capability 8.6 -o {step}",
            message(""),
        ),
        Run(f"check {{step}} {CARD}", FITS),
    ),
}


def unnamed_case(file: pathlib.Path) -> tuple[Run, ...]:
    """The command for a file that the table does not name. Any answer will do, and any refusal."""
    answered = message("")
    if file.suffix == ".py":
        text = file.read_text(errors="replace")
        source = "{file}:build_model" if "\ndef build_model" in f"\n{text}" else "{file}"
        return (Run(f"python -m stowage record {source} -o {{step}}", answered, (0, 2)),)
    with file.open("rb") as opened:
        head = opened.read(4096)
    if b"stowage_plan:" in head:
        return (Run("validate {file} --model-only", answered, (0, 1, 2)),)
    return (Run(WITHOUT_CARD, answered, (0, 1, 2)),)


def run(words: list[str], limits: Limits, folder: pathlib.Path, environment: dict[str, str]) -> Ended:
    def limit_address_space() -> None:
        if limits.address_space is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limits.address_space, limits.address_space))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryFile() as written:
        begin = time.monotonic()
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            preexec_fn=limit_address_space,
        )
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            process.kill()

        timer = threading.Timer(5 * limits.seconds, stop)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        written.seek(0)
        output = written.read().decode(errors="replace")
    processor = usage.ru_utime + usage.ru_stime
    return Ended(
        process.returncode, output, wall, processor, usage.ru_maxrss * 1024 / MB, stopped.is_set()
    )


def fault(asked: Run, ended: Ended, limits: Limits) -> str | None:
    """Why a run is not what it should be."""
    if ended.stopped:
        return f"stopped after {ended.wall:.0f} s"
    if ended.processor > limits.seconds:
        return f"takes {ended.processor:.1f} s of the processor, allowed are {limits.seconds:g}"
    if ended.megabytes > limits.megabytes:
        return f"takes {ended.megabytes:,.0f} MB, allowed are {limits.megabytes:,}"
    if ended.code not in asked.codes:
        return f"exit code {ended.code}, expected {' or '.join(map(str, asked.codes))}"
    if "Traceback (most recent call last)" in ended.output:
        return "a traceback is printed"
    if asked.lacks in ended.output:
        return f"{asked.lacks!r} is printed"
    if asked.shows(ended.output) is None:
        return "the outcome is not the expected one"
    return None


def indented(text: str) -> str:
    shown = text.strip("\n").replace("\x1b", "\\x1b")
    return "".join(f"{'':22}{line}\n" for line in shown.splitlines()[:60])


def torch_python() -> str | None:
    python = os.environ.get("STOWAGE_PYTHON", "python3")
    try:
        found = subprocess.run([python, "-c", "import torch"], capture_output=True)
    except OSError:
        return None
    return python if found.returncode == 0 else None


def has_package(python: str, package: str) -> bool:
    return subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode == 0


def step_without_hooks(file: pathlib.Path, folder: pathlib.Path) -> int:
    """Writes the script without its hooks; the number of lines that went."""
    lines = file.read_text().splitlines(keepends=True)
    kept = [text for text in lines if "_hook(" not in text]
    (folder / "without.py").write_text("".join(kept).replace("hooks.json", "without.json"))
    return len(lines) - len(kept)


def hooked_case(file: pathlib.Path, folder: pathlib.Path) -> tuple[Run, ...]:
    """A script that writes hooks.json: each hook adds one kernel to the step of a run without hooks."""
    hooks = step_without_hooks(file, folder)

    def kernels(name: str) -> int:
        path = folder / f"{name}.json"
        return len(json.loads(path.read_text())["step"]["nodes"]) if path.exists() else 0

    def shown(_: str) -> str | None:
        more = kernels("hooks") - kernels("without")
        return f"{kernels('hooks')} kernels, {more} of hooks" if more == hooks else None

    return Run("python without.py", message("")), Run("python {file}", shown)


def run_case(file: pathlib.Path, program: str, python: str | None) -> bool:
    """Runs a case and prints what came of it; False where it is not as expected."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        runs = hooked_case(file, folder) if file.name == "parameter_hooks.py" else CASES.get(file.name)
        for asked in runs or unnamed_case(file):
            words = [word.format(file=file, step=folder / "step.json") for word in asked.words.split()]
            recording = words[0] == "python"
            if recording and python is None:
                print(f"{'':20}  {file.name}: not run: no torch; STOWAGE_PYTHON names a Python with it")
                return True
            limits = RECORDING if recording else FILE
            command = [python or "", *words[1:]] if recording else [program, *words]
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "python"), str(file.parent)]),
                "PYTHONDONTWRITEBYTECODE": "1",
                "COLUMNS": "200",
            }
            ended = run(command, limits, folder, environment)
            why = fault(asked, ended, limits)
            figures = f"{ended.wall:6.2f} s {ended.megabytes:7.1f} MB"
            shorter = " ".join(words).replace(str(folder) + os.sep, "").replace(str(file), file.name)
            value = asked.shows(ended.output) if why is None else None
            if value is None or "\n" in value or ended.code != 0:
                print(
                    f"{figures}  {'ok' if why is None else 'FAILED'}  {shorter}"
                    + (f": {why}" if why else "")
                )
                print(indented(ended.output), end="", flush=True)
            else:
                print(f"{figures}  ok  {shorter}: {value}", flush=True)
            if why is not None:
                return False
            if ended.code == 2 and len(asked.codes) > 1:
                return True  # refused: there is no file for what would follow
    return True


def main() -> int:
    program, given = sys.argv[1:]
    folder = pathlib.Path(given).resolve()
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != "README.md")
    python = torch_python() if any(path.suffix == ".py" for path in files) else None
    failed, left_out = [], []
    for file in files:
        if file.suffix == ".py" and python is not None:
            packages = [name for name in ("ultralytics",) if re.search(rf"\b{name}\b", file.read_text())]
            missing = [name for name in packages if not has_package(python, name)]
            if missing:
                print(f"{'':20}  {file.name}: not run: {python} has no {missing[0]}")
                left_out.append(file.name)
                continue
        if file.suffix == ".py" and python is None:
            left_out.append(file.name)
        if not run_case(file, str(pathlib.Path(program).resolve()), python):
            failed.append(file.name)
    print(
        f"\n{len(files)} files: {len(files) - len(failed) - len(left_out)} as expected, "
        f"{len(left_out)} not run, {len(failed)} failed"
    )
    for name in failed:
        print(f"failed: {name}")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
