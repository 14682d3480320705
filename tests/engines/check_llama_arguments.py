"""Holds exports for llama.cpp against llama.cpp's own argument parser.

    python tests/engines/check_llama_arguments.py build/stowage LLAMA_ARGUMENTS

LLAMA_ARGUMENTS is what tests/engines/build_llama_parser.sh builds. Exit code 1: an option is not taken,
or means something else than the plan.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CONFIGS = Path(__file__).resolve().parent.parent / "hf"


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def exported(program: str, *words: str) -> list[str]:
    """The words of LLAMA_ARGS, as bash reads them."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
        file.write(run(program, "export", *words, "--to", "llama.cpp"))
        file.flush()
        return run("bash", "-c", f'. {file.name}; printf "%s\\n" "${{LLAMA_ARGS[@]}}"').splitlines()


def parsed(parser: str, words: list[str]) -> dict[str, Any]:
    done = subprocess.run([parser, *words], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"llama.cpp does not take {' '.join(words)}: {done.stderr.strip()[-300:]}")
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{"):])
    return found


def expect(what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise AssertionError(f"{what} is {found!r}, not {wanted!r}")


def check_model(program: str, parser: str) -> None:
    """A model that fits: all of it on the GPU, the users' contexts, the cache's format."""
    config = str(CONFIGS / "llama-3-8b/config.json")
    asked = ["--context-length", "4096", "--users", "3", "--gpu", "rtx3090", "--mode", "inference"]
    for dtype, name in (("auto", "bf16"), ("int8", "q8_0"), ("fp16", "f16")):
        found = parsed(parser, exported(program, config, *asked, "--kv-dtype", dtype))
        expect("the context", found["context"], 3 * 4096)
        expect("the users", found["users"], 3)
        expect("the cache", (found["cache_k"], found["cache_v"]), (name, name))
        expect("flash attention", found["flash"], True)
        expect("the overrides", found["overrides"], [])
        if found["layers"] < 33:
            raise AssertionError(f"{found['layers']} layers are on the GPU, of 32 and the output's")


PLANS = (
    ("small-mixtral", ("--context-length", "64", "--budget", "64MiB", "--pin",
                       "class:parameter=cpu"),
     64, ("blk.0.ffn_gate_exps.weight", "blk.1.attn_q.weight")),
    ("llama-3-8b", ("--mode", "inference", "--context-length", "8192", "--gpu-memory", "5GiB",
                    "--base", "nf4"),
     8192, ()),
)


def check_plans(program: str, parser: str) -> None:
    """Plans with weights on the host: each of them is overridden by the parser's reading."""
    for model, asked, context, tensors in PLANS:
        with tempfile.TemporaryDirectory() as folder:
            plan = f"{folder}/p.yaml"
            run(program, "plan", str(CONFIGS / model / "config.json"), *asked, "-o", plan)
            words = exported(program, plan)
        check_overrides(parsed(parser, words), words, context, tensors)


def check_overrides(found: dict[str, Any], words: list[str], context: int,
                    tensors: tuple[str, ...]) -> None:
    expect("the context", found["context"], context)
    written = [each for i, word in enumerate(words) if words[i - 1] in ("-ot", "--override-tensor")
               for each in word.split(",")]
    expect("the overrides", [f"{pattern}={place}" for pattern, place in found["overrides"]], written)
    if not written:
        raise AssertionError("no weight is overridden")
    for pattern, place in found["overrides"]:
        re.compile(pattern)
        expect(f"the place of {pattern}", place, "CPU")
    for tensor in tensors:
        if not any(re.search(pattern, tensor) for pattern, _ in found["overrides"]):
            raise AssertionError(f"{tensor} is not overridden")


def check_refusal(parser: str) -> None:
    """The parser refuses what it does not know: that it takes an option says something."""
    done = subprocess.run([parser, "--no-such-option"], check=False, capture_output=True)
    expect("the exit code of an unknown option", done.returncode, 1)


def main() -> int:
    program, parser = sys.argv[1:3]
    failed = 0
    for name, check in (("a model", lambda: check_model(program, parser)),
                        ("plans", lambda: check_plans(program, parser)),
                        ("an unknown option", lambda: check_refusal(parser))):
        try:
            check()
            print(f"{name}: read by llama.cpp's own parser")
        except (AssertionError, subprocess.CalledProcessError) as why:
            failed += 1
            print(f"{name}: FAILED: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
