#!/usr/bin/env python3
"""Which lines can change unseen by any test?

    tests/mutation/mutate_source.py --count 40 [--seed 1] [--build FOLDER] [PATH...]

Takes COUNT places at random in the sources under PATH (by default the estimator's memory, arena,
allocator and step and the whole planner), changes one operator or constant at a time in a copy of
the committed tree, builds the tests that can see it, and runs them. A change that no test catches is
printed with its line, and the exit code is 1. Changes that do not compile are not counted.

The copy stays in FOLDER (by default build-mutation), so that a second run compiles little.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATHS = ["estimator/memory", "estimator/arena", "estimator/allocator", "estimator/step", "planner"]

# (pattern, replacements): spaces around a comparison tell it from a template's bracket.
CHANGES = [
    (r" < ", [" <= ", " > "]), (r" <= ", [" < "]), (r" > ", [" >= ", " < "]), (r" >= ", [" > "]),
    (r" == ", [" != "]), (r" != ", [" == "]), (r" && ", [" || "]), (r" \|\| ", [" && "]),
    (r" \+ ", [" - "]), (r" - ", [" + "]), (r" \* (?=[\w(])", [" + "]), (r" \+= ", [" -= "]),
    (r" -= ", [" += "]), (r"\btrue\b", ["false"]), (r"\bfalse\b", ["true"]),
    (r"std::max\b", ["std::min"]), (r"std::min\b", ["std::max"]),
    (r"(?<![\w.\"'])0(?![\w.])", ["1"]), (r"(?<![\w.\"'])1(?![\w.])", ["2", "0"]),
]


def places(path):
    """(line number, column, length, replacement) of every change the file offers."""
    for number, line in enumerate(path.read_text().splitlines()):
        code = re.sub(r'"(\\.|[^"\\])*"', lambda m: "\0" * len(m.group()), line.split("//")[0])
        if not code.strip() or code.lstrip().startswith(("#", "template", "using", "static_assert",
                                                         "assert(", "case ")):
            continue
        for pattern, replacements in CHANGES:
            for match in re.finditer(pattern, code):
                for replacement in replacements:
                    yield number, match.start(), len(match.group()), replacement


def run(command, folder, limit):
    try:
        return subprocess.run(command, cwd=folder, timeout=limit, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL).returncode
    except subprocess.TimeoutExpired:
        return "hangs"


def tests_that_see(path):
    return ["planner_tests"] if path.startswith("planner/") else ["estimator_tests", "planner_tests"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, required=True, help="how many changes to try")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", default="build-mutation")
    parser.add_argument("--limit", type=int, default=600, help="seconds a test program may take")
    parser.add_argument("paths", nargs="*", default=PATHS)
    options = parser.parse_args()

    tree = pathlib.Path(options.build).resolve() / "source"
    build = tree / "build"
    if not tree.exists():
        subprocess.run(["git", "clone", "-q", str(ROOT), str(tree)], check=True)
    subprocess.run(["git", "fetch", "-q", str(ROOT), "HEAD"], cwd=tree, check=True)
    subprocess.run(["git", "checkout", "-q", "-f", "FETCH_HEAD"], cwd=tree, check=True)
    targets = ["estimator_tests", "planner_tests"]
    subprocess.run(["cmake", "--preset", "release"], cwd=tree, check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "build", "--target", *targets], cwd=tree, check=True,
                   stdout=subprocess.DEVNULL)
    for target in targets:
        if run([str(build / "tests" / target)], tree, options.limit) != 0:
            sys.exit(f"{target} fails before anything is changed")

    files = [f for f in subprocess.run(["git", "ls-files", *options.paths], cwd=tree, text=True,
                                       check=True, capture_output=True).stdout.split()
             if f.endswith(".cpp")]
    offered = [(f, *place) for f in files for place in places(tree / f)]
    chosen = random.Random(options.seed).sample(offered, min(options.count, len(offered)))

    caught, uncompiled, survivors = 0, 0, []
    for name, number, column, length, replacement in sorted(chosen):
        path = tree / name
        text = path.read_text()
        lines = text.split("\n")
        line = lines[number]
        lines[number] = line[:column] + replacement + line[column + length:]
        path.write_text("\n".join(lines))
        try:
            seen = tests_that_see(name)
            if run(["cmake", "--build", "build", "--target", *seen], tree, 1800) != 0:
                uncompiled += 1
            elif any(run([str(build / "tests" / test)], tree, options.limit) != 0 for test in seen):
                caught += 1
            else:
                survivors.append((name, number + 1, line.strip(), lines[number].strip()))
                print(f"{name}:{number + 1}: not caught\n  - {line.strip()}\n"
                      f"  + {lines[number].strip()}", flush=True)
        finally:
            path.write_text(text)
    print(f"seed {options.seed}: {len(chosen)} of {len(offered)} possible changes tried, "
          f"{caught} caught, {len(survivors)} not, {uncompiled} did not compile")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
