"""docs/schemas of files: shipped descriptions and plans keep to them, and changed ones do not."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
from collections.abc import Callable
from typing import Any

from answer_schemas import FOLDER

try:
    import jsonschema
    import yaml
except ImportError:
    yaml = None  # type: ignore[assignment]

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLANS = {
    "of a training": ["mnist-cnn", "--batch", "64", "--budget", "8MiB"],
    "with pins": ["mlp", "--batch", "64", "--budget", "64MiB", "--pin", "update.*=cpu"],
    "of an inference": ["mnist-cnn", "--mode", "inference", "--batch", "64", "--budget", "2MiB"],
    "of serving": [
        "llama-3.2-1b",
        "--set",
        "layers=2",
        "--precision",
        "bf16",
        "--context-length",
        "2048",
        "--users",
        "2",
        "--gpu-memory",
        "800MiB",
    ],
    "of a model with settings": [
        "gpt2",
        "--gpu",
        "t4",
        "--batch",
        "1",
        "--seq",
        "64",
        "--lora",
        "r=4,targets=all-linear",
    ],
}
PLANS_FOR_PYTORCH = {
    "with updates on the CPU": [
        "gpt2",
        "--for",
        "pytorch",
        "--batch",
        "2",
        "--gpu-memory",
        "3300MiB",
        "--precision",
        "amp-bf16",
        "--optimizer",
        "adamw",
        "--choose",
        "cpu-optimizer-checkpoint",
    ],
    "without any need": ["mnist-cnn", "--for", "pytorch", "--batch", "64", "--gpu", "t4"],
}

# (where, the value there): a change after which a file is none of its kind.
Change = tuple[list[Any], Any]
DESCRIPTION_CHANGES: list[Change] = [
    (["model"], 3),
    (["chanels"], 1),
    (["inputs", "image", "dtype"], "float31"),
    (["layers"], "conv2d"),
    (["layers", 0], {"conv2d": {"chanels": 8}}),
    (["layers", 0], {"conv2d": {"kernel": {"height": 3}}}),
    (["layers", 0], {"conv2d": {"frozen": 1.5}}),
    (["layers", 0], {"conv2d": None, "relu": None}),
    (["defaults"], {"conv": {}}),
    (["train"], {"momentun": 0.9}),
    (["train"], {"precision": "fp31"}),
    (["pins"], {"conv1": "disk"}),
    (["based_on"], "resnet18"),
]
PLAN_CHANGES: list[Change] = [
    ([0, "stowage_plan"], 1),
    ([0, "pinned"], "some"),
    ([0, "totals", "arena_bytes"], -1),
    ([0, "totals", "arena"], 1),
    ([0, "inputs", "batch"], 0),
    ([0, "machine", "links", 0, "from"], 1),
    ([0, "machine", "processors", 0, "kind"], "tpu"),
    ([1, "nodes"], []),
    ([1, "node"], ""),
    ([2, "format"], "stowage-plan"),
]
PYTORCH_CHANGES: list[Change] = [
    (["format"], "stowage-plan"),
    (["version"], 2),
    (["batch"], 0),
    (["offloads"], []),
    (["offload"], [{"saved": []}]),
    (["checkpoint"], [{"modul": "h.0"}]),
    (["names"], "guessed"),
    (["optimizer_on_cpu"], {"gradients_in_flight": 0}),
    (["totals", "device_bytes"], None),
    (["question", "settings", "batch"], "2"),
]


def changed(value: Any, change: Change) -> Any:
    """A copy with another value there."""
    path, wanted = change
    copied = copy.deepcopy(value)
    holder = copied
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = wanted
    return copied


def yaml_documents(text: str) -> list[Any]:
    """As YAML 1.2 reads them: PyYAML takes 5e-5 for a text."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$"),
        list("-+.0123456789"),
    )
    return list(yaml.load_all(text, Loader))


def mistakes_of(name: str) -> Callable[[Any], str]:
    """What a value has against the schema; "": nothing."""
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    step = json.loads((ROOT / "docs/stowage-step.schema.json").read_text())
    for item in schema.get("prefixItems", []):
        if item.get("$ref") == "../stowage-step.schema.json":
            item.clear()
            item.update({"$id": "stowage-step", **step})
    validator = jsonschema.Draft202012Validator(schema)

    def mistakes(value: Any) -> str:
        error = jsonschema.exceptions.best_match(validator.iter_errors(value))
        return "" if error is None else f"{list(error.absolute_path)}: {error.message[:200]}"

    return mistakes


@unittest.skipIf(yaml is None, "jsonschema or yaml is not here")
class FileSchemas(unittest.TestCase):
    def check(self, name: str, files: dict[str, Any], example: str, changes: list[Change]) -> None:
        mistakes = mistakes_of(name)
        self.assertGreater(len(files), 1)
        for title, value in files.items():
            with self.subTest(title):
                self.assertEqual(mistakes(value), "")
        for change in changes:
            with self.subTest(change):
                self.assertNotEqual(mistakes(changed(files[example], change)), "")

    def made(self, words: list[str]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plan"
            done = subprocess.run(
                [os.environ["STOWAGE_PROGRAM"], "plan", *words, "-o", str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            return path.read_text()

    def test_shipped_descriptions(self) -> None:
        paths = [*(ROOT / "configs/models").glob("*.yaml"), *(ROOT / "tests/models").glob("*.yaml")]
        files = {path.stem: yaml_documents(path.read_text())[0] for path in paths}
        self.check("model-description", files, "resnet18", DESCRIPTION_CHANGES)

    def test_plans(self) -> None:
        kept = {path.stem: path.read_text() for path in (ROOT / "tests/plans").rglob("*.yaml")}
        texts = {**kept, **{title: self.made(words) for title, words in PLANS.items()}}
        self.check(
            "plan-file",
            {title: yaml_documents(text) for title, text in texts.items()},
            "mlp",
            PLAN_CHANGES,
        )

    def test_plans_for_pytorch(self) -> None:
        files = {title: json.loads(self.made(words)) for title, words in PLANS_FOR_PYTORCH.items()}
        self.check("pytorch-plan", files, "with updates on the CPU", PYTORCH_CHANGES)


if __name__ == "__main__":
    unittest.main()
