"""What the commands print that Python has no call for keeps to its schema."""

from __future__ import annotations

import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

from command_schemas import COMMANDS, command_documents

try:
    import jsonschema
except ImportError:
    jsonschema = None  # type: ignore[assignment]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    line = [os.environ["STOWAGE_PROGRAM"], *words, "--format", "json"]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def write_weights(path: pathlib.Path) -> None:
    """A file of safetensors with one tensor of two numbers."""
    head = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(8))


@unittest.skipIf(jsonschema is None, "jsonschema is not here")
class CommandSchemas(unittest.TestCase):
    folder: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        for name, budget in (("a", "1400KiB"), ("b", "1MiB")):
            made = run("plan", "mnist-cnn", "--batch", "64", "--budget", budget, "-o",
                       str(cls.folder / name))
            assert made.returncode == 0, made.stdout + made.stderr
        write_weights(cls.folder / "w.safetensors")

    def lines(self) -> dict[str, list[list[str]]]:
        a, b, missing = (str(self.folder / name) for name in ("a", "b", "missing"))
        return {
            "validate": [["validate", a, *more]
                         for more in (["--model-only"], [], ["--steps", "2"], ["--on", "cuda"])],
            "explain": [["explain", a, "*weight"], ["explain", a, "update.*"]],
            "plan-diff": [["diff", a, b], ["diff", a, a]],
            "summary": [["summary", "mnist-cnn"], ["summary", "gpt2", "--seq", "512", "--batch", "2"]],
            "weights": [["summary", str(self.folder / "w.safetensors")]],
            "probe": [["probe"]], "models": [["models"]], "gpus": [["gpus"], ["gpus", "rtx"]],
            "ops": [["ops"], ["ops", "linear"]],
            "export": [["export", a, "--to", "json"],
                       ["export", "gpt2", "--to", "accelerate", "--gpu", "t4"]],
            "refusal": [["validate", missing], ["explain", a], ["check", "resnet50"]]}

    def test_answers_keep_to_them(self) -> None:
        documents = command_documents()
        self.assertEqual(set(self.lines()), set(COMMANDS))
        for name, lines in self.lines().items():
            schema = documents[f"{name}.schema.json"]
            jsonschema.Draft202012Validator.check_schema(schema)
            for words in lines:
                with self.subTest(" ".join(words)):
                    done = run(*words)
                    text = done.stderr if name == "refusal" else done.stdout
                    self.assertEqual(done.returncode == 2, name == "refusal", done.stderr)
                    jsonschema.validate(json.loads(text), schema, jsonschema.Draft202012Validator)

    def test_another_member_is_refused(self) -> None:
        schema = command_documents()["models.schema.json"]
        found = json.loads(run("models").stdout)
        found["models"][0]["weight"] = 1
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate(found, schema, jsonschema.Draft202012Validator)


if __name__ == "__main__":
    unittest.main()
