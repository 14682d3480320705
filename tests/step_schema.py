#!/usr/bin/env python3
"""Holds step files, lowered here and recorded ones, against docs/stowage-step.schema.json.

    python3 tests/step_schema.py build/stowage [MODEL ...]

Wants the Python package jsonschema (4.0 or later); exits with 77 where it is missing.
"""
import json
import pathlib
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("not checked: Python has no package jsonschema")
    sys.exit(77)

schema_file = pathlib.Path(__file__).parent.parent / "docs" / "stowage-step.schema.json"
validator = jsonschema.Draft202012Validator(json.loads(schema_file.read_text()))
mistakes = 0
for model in sys.argv[2:] or ["mlp", "resnet18", "gpt2", "lstm-lm", "unet"]:
    for settings in [["pytorch"], ["stowage"], ["pytorch", "--accumulation", "4"]]:
        command = [sys.argv[1], "lower", model, "--runtime", *settings]
        step = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        for error in validator.iter_errors(step):
            mistakes += 1
            print(f"{model}, {settings}: {list(error.absolute_path)}: {error.message[:200]}")
tests = pathlib.Path(__file__).parent
for recorded in sorted([*(tests / "recorded").glob("*.json"), *(tests / "fuzz/step").glob("*.json")]):
    for error in validator.iter_errors(json.loads(recorded.read_text())):
        mistakes += 1
        print(f"{recorded.name}: {list(error.absolute_path)}: {error.message[:200]}")
sys.exit(1 if mistakes else 0)
