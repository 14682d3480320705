"""Scripts: which axes of their step's tensors are the batch, recurrent layers, and their own options."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from command_case import PACKAGE, CommandCase

HEAD = """
    import torch, stowage

    net = torch.nn.Linear(16, 4).cuda()
"""
GRAPH = HEAD + """
    @stowage.step{axes}
    def step(x, adjacency):
        net.zero_grad()
        (adjacency @ net(x)).square().mean().backward()

    step(torch.zeros({nodes}, 16).cuda(), torch.zeros({rows}, {nodes}).cuda())
"""
NOTHING = HEAD + """
    @stowage.step
    def step():
        net(torch.zeros(8, 16, device="cuda")).sum().backward()

    step()
"""
TWICE = HEAD + """
    @stowage.step
    def step(x, y):
        torch.nn.functional.mse_loss(net(x[:, :16]), y[:, :4]).backward()

    x = torch.zeros(8, 20).cuda()
    step(x, x)
"""
OPTIONS = """
    import argparse, sys
    import torch, stowage

    print(sys.argv, file=sys.stderr)
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()

    @stowage.step
    def step(net, x):
        net(x).sum().backward()

    def build(batch):
        return torch.nn.Linear(4, 4), torch.zeros(batch, options.epochs, 4), torch.mean

    if __name__ == "__main__":
        step(torch.nn.Linear(4, 4).cuda(), torch.zeros(options.epochs, 4).cuda())
"""
DATA = """
    import numpy, torch, stowage

    class Digits(torch.utils.data.Dataset):
        def __init__(self):
            self.data = torch.from_numpy(numpy.ones((12, 8, 8), dtype=numpy.uint8))

        def __len__(self):
            return len(self.data)

        def __getitem__(self, index):
            digit = self.data[index].numpy()
            assert digit.dtype == numpy.uint8 and digit.shape == (8, 8)
            return torch.from_numpy(numpy.asarray(self.data[index]) + digit).float().flatten()

    net = torch.nn.Linear(64, 4).cuda()

    @stowage.step
    def step(x):
        net(x).sum().backward()

    for x in torch.utils.data.DataLoader(Digits(), batch_size=4, num_workers={workers}):
        step(x.cuda())
"""
TRUNCATED = """
    import torch, stowage

    net = torch.nn.Linear(16, 4, device="cuda")
    torch.nn.init.trunc_normal_(net.weight, std=0.02)
    torch.nn.init.trunc_normal_(net.weight, std=0.02, a=3.0, b=4.0)

    @stowage.step
    def step(x):
        net(x).square().mean().backward()

    step(torch.zeros(8, 16).cuda())
"""
RECURRENT = """
    import torch, stowage

    {make}
    optimizer = torch.optim.Adam(net.parameters())

    @stowage.step(batch_axes={axis})
    def step(x):
        optimizer.zero_grad()
        {flatten}
        net(x)[0].square().mean().backward()
        optimizer.step()

    step(torch.zeros(5, 4, 8).cuda())
"""


def recurrent(make: str, axis: int = 1, flatten: str = "pass") -> str:
    return RECURRENT.format(make=make, axis=axis, flatten=flatten)


def no_update(parameters: int, size: str) -> str:
    """What is printed of a step that updates none of so many trained parameters."""
    return (f"warning: the step has no update of {parameters} trained parameters ({size}): no optimizer "
            "ran for them when the step was recorded, so the optimizer's state and temporaries are not "
            "counted\n  stowage check, batch and plan take --optimizer NAME, which adds them; or record "
            "a function that calls optimizer.step()\n")


def rows(document: dict[str, Any], kind: str) -> list[tuple[str, Any]]:
    return [(row[0], row[3]) for row in document["step"]["storages"] if row[1] == kind]


class Axes(CommandCase):
    files = {"graph.py": GRAPH.format(axes="(batch_axes=[None, None])", nodes=10, rows=10),
             "list.py": GRAPH.format(axes="", nodes=6, rows=3), "nothing.py": NOTHING,
             "said.py": GRAPH.format(axes="(batch_axes=[0, None])", nodes=6, rows=3),
             "twice.py": TWICE}

    def test_a_step_of_which_nothing_follows_the_batch(self) -> None:
        document, errors = self.recorded("graph.py")
        self.assertEqual((document["batch"], document["fixed_batch"], document["warnings"], errors),
                         (1, True, [], no_update(2, "272 B")))
        self.assertEqual(rows(document, "input"), [("input.0", 640), ("input.1", 400)])
        self.assertEqual(self.check()["verdict"], "fits")

    def test_another_batch_of_it_is_asked_for(self) -> None:
        self.assertEqual(self.mistake("graph.py", "--batch", "8"),
                         "error: batch 8 is asked for, and no input follows the batch\n  leave the batch "
                         "out, or say by batch_axes which axis is the batch\n")

    def test_first_axes_of_several_sizes_are_asked_for(self) -> None:
        self.assertEqual(self.mistake("list.py"),
                         "error: input 0 of shape [6, 16] has 6 along axis 0 where another has 3: which "
                         "of them is the batch is not known\n  batch_axes says it, with None for a "
                         "tensor that does not follow the batch, for example batch_axes=[0, None]\n")

    def test_a_step_that_fails_with_the_axes_that_were_said(self) -> None:
        document, errors = self.recorded("said.py")
        self.assertEqual((document["batch"], document["fixed_batch"]), (6, True))
        self.assertIn("warning: the step is recorded for batch 6 alone: at batch 7 it raises "
                      "RuntimeError", errors)

    def test_a_step_that_takes_no_tensor(self) -> None:
        document, errors = self.recorded("nothing.py")
        self.assertEqual((document["batch"], document["fixed_batch"]), (1, True))
        self.assertEqual(errors, "warning: the step is recorded for batch 1 alone: no input has an axis "
                                 "that could be the batch\n  give the batch's tensors to the step as "
                                 "arguments\n" + no_update(2, "272 B"))
        self.assertEqual(self.check()["verdict"], "fits")

    def test_a_tensor_that_is_given_twice_is_one(self) -> None:
        document, _ = self.recorded("twice.py")
        self.assertFalse(document["fixed_batch"])
        self.assertEqual([size for _, size in rows(document, "input")], [[0, 80]])
        self.assertEqual(self.check()["verdict"], "fits")


class Recurrent(CommandCase):
    files = {
        "float16.py": recurrent("net = torch.nn.LSTM(8, 16).cuda()").replace(
            "net(x)", "torch.autocast('cuda', torch.float16)(net)(x)"),
        "bfloat16.py": recurrent("net = torch.nn.LSTM(8, 16).cuda()").replace(
            "net(x)", "torch.autocast('cuda', torch.bfloat16)(net)(x)"),
        "moved.py": recurrent("net = torch.nn.LSTM(8, 16).cuda()"),
        "made.py": recurrent("net = torch.nn.LSTM(8, 16, device='cuda')"),
        "flattened.py": recurrent("net = torch.nn.LSTM(8, 16).cuda()",
                                  flatten="net.flatten_parameters()"),
        "first.py": recurrent("net = torch.nn.GRU(8, 16, 2, bidirectional=True, "
                              "batch_first=True).to('cuda')", axis=0),
        "projected.py": recurrent("net = torch.nn.LSTM(8, 16, proj_size=4).cuda()"),
        "apart.py": recurrent("net = torch.nn.RNN(8, 16).cuda()\n"
                              "    net.weight_hh_l0 = torch.nn.Parameter(torch.zeros(16, 16).cuda())\n"
                              "    net.flatten_parameters = lambda: None"),
    }

    def of(self, name: str) -> dict[str, Any]:
        document, errors = self.recorded(name)
        self.assertEqual((document["fixed_batch"], errors), (False, ""))
        self.assertIn("aten::_cudnn_rnn", [node[1] for node in document["step"]["nodes"]])
        return document

    def test_weights_that_are_moved_to_the_device_are_one_buffer(self) -> None:
        for name, elements in (("moved.py", 4 * 16 * (8 + 16 + 2)), ("made.py", 4 * 16 * (8 + 16 + 2)),
                               ("flattened.py", 4 * 16 * (8 + 16 + 2)),
                               ("first.py", 2 * 3 * 16 * (8 + 16 + 2) + 2 * 3 * 16 * (32 + 16 + 2)),
                               ("projected.py", 4 * 16 * (8 + 4 + 2) + 4 * 16)):
            with self.subTest(name):
                document = self.of(name)
                self.assertEqual([size for _, size in rows(document, "parameter")], [4 * elements])
                self.assertEqual(document["batch"], 5 if name == "first.py" else 4)
                self.assertEqual(self.check()["verdict"], "fits")

    def test_weights_that_are_in_no_one_buffer_are_copied_by_the_call(self) -> None:
        document = self.of("apart.py")
        self.assertEqual(len(rows(document, "parameter")), 2)
        copies = [size for name, size in rows(document, "saved_auxiliary") if "_cudnn_rnn" in name]
        self.assertIn(4 * 16 * (8 + 16 + 2), copies)

    def test_autocast_copies_the_weights_to_float16(self) -> None:
        for word in ("float16", "bfloat16"):  # cuDNN's is float16 under either
            with self.subTest(word):
                document = self.of(f"{word}.py")
                copies = [node for node in document["step"]["nodes"] if node[1] == "aten::copy_"]
                self.assertEqual(len(copies), 4)
                made = dict(rows(document, "activation"))
                self.assertEqual(made["LSTM.zeros.3"], 2 * 4 * 16 * (8 + 16 + 2))
                self.assertEqual(made["LSTM._cudnn_rnn"], [0, 2 * 5 * 16])
                self.assertEqual(self.check()["verdict"], "fits")

    def test_an_exception_on_its_way_is_not_logged(self) -> None:
        with open("wrong.py", "w") as file:
            file.write("import torch, stowage\nnet = torch.nn.Linear(4, 4).cuda()\n\n@stowage.step\n"
                       "def step(x):\n    net(x).view(3, 5).sum().backward()\n\n"
                       "step(torch.zeros(8, 4).cuda())\n")
        done = subprocess.run(
            [sys.executable, "-m", "stowage", "record", "wrong.py", "-o", "s.json"], text=True,
            capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\Aerror: wrong\.py:6: RuntimeError: .*\n  raised while the step "
                                      r"ran on tensors without values; STOWAGE_TRACEBACK=1 shows where "
                                      r"from\n\Z")


class Initialised(CommandCase):
    files = {"train.py": TRUNCATED}

    def test_normal_weights_within_bounds_are_not_drawn(self) -> None:
        document, _ = self.recorded("train.py")
        self.assertEqual(document["batch"], 8)


class DataSets(CommandCase):
    files = {"train.py": DATA.format(workers=0), "workers.py": DATA.format(workers=1)}

    def test_one_that_was_made_on_the_pretended_device_has_arrays_of_zeros(self) -> None:
        for file in self.files:
            with self.subTest(file):
                document, _ = self.recorded(file)
                self.assertEqual((document["batch"], rows(document, "input")),
                                 (4, [("input", [0, 256])]))


class Options(CommandCase):
    files = {"train.py": OPTIONS}

    def test_words_behind_two_dashes_are_the_scripts(self) -> None:
        for words, said in ((["train.py", "--", "--epochs", "1"], ["--epochs", "1"]),
                            (["--batch", "5", "train.py", "--", "--epochs", "1", "-o", "x"], None),
                            (["train.py", "--batch", "5", "--", "--epochs=1", "a", "b"],
                             ["--epochs=1", "a", "b"]),
                            (["train.py", "--"], []), (["train.py"], []),
                            (["train.py:build", "--", "--epochs", "1"], ["--epochs", "1"]),
                            (["train.py:build"], [])):
            with self.subTest(words):
                if said is None:
                    self.assertIn("train.py: error: unrecognized arguments: -o",
                                  self.mistake(*words))
                    continue
                document, errors = self.recorded(*words)
                missing = "" if "build" in "".join(words) else no_update(2, "80 B")
                self.assertEqual(errors, f"{['train.py', *said]}\n{missing}")
                batch = 5 if "5" in words else 2 if "build" in words[0] else 1 if said else 3
                self.assertEqual(document["batch"], batch)

    def test_two_dashes_twice(self) -> None:
        _, errors = self.recorded("train.py", "--", "--epochs", "1", "--", "--epochs")
        self.assertEqual(errors, "['train.py', '--epochs', '1', '--', '--epochs']\n" +
                         no_update(2, "80 B"))

    def test_an_export_runs_the_file_with_its_options(self) -> None:
        code, output, errors = self.run_command(
            "export", "train.py:build", "-o", "-", "--loss", "mse", "--", "--epochs", "7")
        self.assertEqual((code, errors), (0, "['train.py', '--epochs', '7']\n"))
        self.assertIn("input: {shape: [batch, 7, 4]}\n", output)

    def test_the_scripts_own_mistake(self) -> None:
        end = ("error: train.py ended with exit code 2 before its step\n  its own options stand after "
               "--: record train.py -o s.json -- --epochs 1\n")
        for source in ("train.py", "train.py:build"):
            errors = self.mistake(source, "--", "--epoch")
            self.assertTrue(errors.endswith(
                "train.py: error: argument --epochs: expected one argument\n" + end), errors)

    def test_a_script_that_ends_with_a_text(self) -> None:
        with open("ends.py", "w") as file:
            file.write("import sys\nsys.exit('no data')\n")
        self.assertEqual(self.mistake("ends.py"), "error: ends.py ended before its step: no data\n")
        with open("quits.py", "w") as file:
            file.write("import sys\nsys.exit()\n")
        self.assertIn("error: quits.py ended with exit code 0 before its step\n",
                      self.mistake("quits.py"))

    def test_options_of_the_script_before_the_dashes(self) -> None:
        self.assertIn("python -m stowage: error: unrecognized arguments: --epochs 1\n",
                      self.mistake("train.py", "--epochs", "1"))

    def test_sources_that_take_no_words(self) -> None:
        for command in ("record", "export"):
            self.assertEqual(self.mistake("torchvision:resnet18", "--", "--epochs", "1", command=command),
                             "error: -- --epochs 1: torchvision:resnet18 takes no words of its own\n"
                             "  leave them out; what stands after -- is for FILE.py\n")
