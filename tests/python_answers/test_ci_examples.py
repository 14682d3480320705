"""examples/ci, run by their own commands in a repository of the test's."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = str(ROOT / "examples/ci/memory_change.sh")
MODEL = """\
model: net
inputs:
  image: {{shape: [batch, 3, 64, 64]}}
  label: {{shape: [batch], dtype: int64}}
layers:
  - conv2d: {{name: conv1, channels: {channels}, kernel: 3, padding: 1}}
  - relu
  - flatten
  - linear: {{name: fc, features: 10}}
loss: {{cross_entropy: {{from: [fc, label]}}}}
"""


class Repository(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        commands = self.folder / "bin"
        commands.mkdir()
        (commands / "stowage").symlink_to(os.environ["STOWAGE_PROGRAM"])
        someone = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER")
                   for what in ("NAME", "EMAIL")}
        self.environment = {**os.environ, **someone, "PATH": f"{commands}:{os.environ['PATH']}"}
        self.tree = self.folder / "tree"
        self.tree.mkdir()
        self.run_in("git", "init", "-q", "-b", "main")
        self.write(16)
        self.run_in("git", "add", "-A")
        self.run_in("git", "commit", "-qm", "one")

    def write(self, channels: int) -> None:
        (self.tree / "model.yaml").write_text(MODEL.format(channels=channels))

    def run_in(self, *words: str) -> tuple[int, str, str]:
        done = subprocess.run(words, cwd=self.tree, env=self.environment, capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout, done.stderr

    def test_the_change_is_compared_and_decides(self) -> None:
        options = ["--gpu", "gtx-1050-2gb", "--batch", "64"]
        self.write(24)
        code, text, errors = self.run_in(SCRIPT, "main", "model.yaml", *options)
        self.assertEqual(code, 0, errors)
        self.assertEqual(text.splitlines()[0],
                         "What `model.yaml` takes, before (`main`) and after this change:")
        self.assertRegex(text, r"\| *[0-9.]+ MiB \| *[0-9.]+ MiB \| \+[0-9.]+ MiB +\| activation")
        self.write(4096)
        code, text, _ = self.run_in(SCRIPT, "main", "model.yaml", *options)
        self.assertEqual(code, 1)
        self.assertIn("does not fit", text)
        (self.tree / "model.yaml").write_text("model: broken\n")
        self.assertEqual(self.run_in(SCRIPT, "main", "model.yaml", *options)[0], 2)
        self.assertEqual(self.run_in("git", "worktree", "list")[1].count("\n"), 1)  # nothing is left

    def test_a_new_model_and_no_revision(self) -> None:
        self.run_in("cp", "model.yaml", "other.yaml")
        code, text, _ = self.run_in(SCRIPT, "main", "other.yaml", "--gpu", "t4")
        self.assertEqual(code, 0)
        self.assertTrue(text.startswith("`other.yaml` is new.\n"))
        self.assertEqual(self.run_in(SCRIPT, "nosuch", "model.yaml", "--gpu", "t4")[0], 2)

    def test_the_hook_is_a_command_that_runs(self) -> None:
        text = (ROOT / "examples/ci/pre-commit-config.yaml").read_text()
        entry = re.search(r"entry: (.*)", text)
        assert entry is not None
        self.assertEqual(self.run_in("bash", "-c", entry[1])[0], 0)
        self.write(400_000)
        self.assertEqual(self.run_in("bash", "-c", entry[1])[0], 1)

    def test_the_workflow_runs_as_it_stands(self) -> None:
        text = (ROOT / "examples/ci/github-workflow.yml").read_text()
        block = re.search(r"id: compare\n +run: \|\n((?: {10}.*\n)+)", text)
        assert block is not None
        (self.tree / "ci").mkdir()
        (self.tree / "ci/memory_change.sh").symlink_to(SCRIPT)
        self.run_in("git", "branch", "-f", "origin/main")
        self.write(400_000)
        lines = "\n".join(line[10:] for line in block[1].splitlines())
        self.environment.update(GITHUB_BASE_REF="main", MODEL="model.yaml",
                                OPTIONS="--gpu rtx3060 --batch 32",
                                GITHUB_STEP_SUMMARY=str(self.folder / "summary"),
                                GITHUB_OUTPUT=str(self.folder / "output"))
        code, _, errors = self.run_in("bash", "-e", "-c", lines)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual((self.folder / "output").read_text(), "code=1\n")
        self.assertIn("does not fit", (self.folder / "summary").read_text())


if __name__ == "__main__":
    unittest.main()
