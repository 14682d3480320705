"""docs/schemas: they are as the dataclasses have it, and the program's answers keep to them."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import unittest

from answer_schemas import ANSWERS, FOLDER, documents

try:
    import jsonschema
except ImportError:
    jsonschema = None  # type: ignore[assignment]

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLAMA = str(ROOT / "tests/hf/llama-3-8b/config.json")
COMMANDS = {
    "check": ["check resnet50 --gpu t4 --batch 64", "check resnet50 --gpu t4 --batch 640",
              "check gpt2 --gpu rtx3090 --mode inference",
              "check mnist-cnn --gpu-memory 2GiB --eval-batch 64",
              "check resnet18 --gpu t4 --runtime tensorflow", "check resnet18 --gpu t4 --runtime theano",
              "check gpt2 --gpu t4 --gpus 4 --zero 3 --rule-of-thumb"],
    "serving-check": [f"check {LLAMA} --mode inference --context-length 4096 --gpu t4",
                      f"check {LLAMA} --mode inference --context-length 4096 --gpu h200 --cache static"],
    "batch": ["batch resnet50 --gpu t4", "batch gpt2-xl --gpu-memory 1GiB",
              "batch mnist-cnn --gpu t4 --margin 1GiB", "batch gpt2 --gpu rtx3090 --global-batch 512"],
    "table": ["check resnet50 vgg16 --gpu t4,l4", "batch resnet50 nosuch --gpu t4",
              f"check {LLAMA} --mode inference --context-length 4096 --gpu t4,h200"],
    "diff": ["diff resnet18 resnet34 --gpu t4", "diff resnet18 --gpu t4 --change batch=4096"],
    "plan": ["plan mnist-cnn --gpu t4 --batch 64", "plan vgg16 --gpu rtx3060 --batch 64",
             "plan mnist-cnn --budget 1KiB --batch 64"],
    "plan-for-pytorch": ["plan mnist-cnn --gpu t4 --batch 64 --for pytorch",
                         "plan mnist-cnn --gpu-memory 450MiB --batch 16384 --for pytorch"]}


class Schemas(unittest.TestCase):
    def test_they_are_as_the_dataclasses_have_it(self) -> None:
        self.assertEqual({path.name: path.read_text() for path in FOLDER.glob("*.json")}, documents())

    @unittest.skipIf(jsonschema is None, "jsonschema is not here")
    def test_answers_keep_to_them(self) -> None:
        self.assertEqual(set(COMMANDS), set(ANSWERS))
        for name, lines in COMMANDS.items():
            schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
            jsonschema.Draft202012Validator.check_schema(schema)
            for line in lines:
                with self.subTest(line):
                    words = [os.environ["STOWAGE_PROGRAM"], *line.split(), "--format", "json"]
                    done = subprocess.run(words, capture_output=True, text=True, check=False)
                    self.assertIn(done.returncode, (0, 1, 2))
                    jsonschema.validate(json.loads(done.stdout), schema, jsonschema.Draft202012Validator)


if __name__ == "__main__":
    unittest.main()
