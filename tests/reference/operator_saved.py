"""What PyTorch's CUDA path does with one operator in a small network: shapes, parameters, what is
saved for the backward pass, and the live bytes at the peak of each phase.

A family's script lists Cases and calls `main("convolution", CASES)`, which writes
operators/convolution.json; tests/estimator/catalogue/operator_reference.cpp builds the same network
from the description in each row and holds ours against it, to the byte.

    venv/bin/python tests/reference/convolution_saved.py

A row: {name, description, batch, mode, precision, output_shape, parameters, buffers, saved, peaks}.
`parameters` and `buffers` are [shape, dtype], sorted; `saved` is [kind, bytes, count] of the storages
that autograd keeps; `peaks` are the live bytes of the second step with plain SGD, phase by phase.
Batch norm's reserve space counts 0 bytes: its size is not known without a GPU.
"""

import collections
import contextlib
import dataclasses
import gc
import math
import pathlib
import platform
import sys
from typing import Callable

import channels_last
import fake_cuda

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Case:
    """`inputs`: name -> shape as the description has it ("[batch, 3, 8, 8]"), or (shape, dtype), in
    the order of the module's arguments. `layers`: YAML, one layer each. `module` builds the same
    network, whose output is compared with a target by `loss(output, target)`; `loss_layer` is the
    description's. `target`: as an input; None: as the output, whose first axis is the batch.
    `precision`: one of the program's. `layout`: "nhwc" lays out the model and its inputs, not the
    target. `extra`: other keys of the description, such as blocks."""

    name: str
    inputs: dict
    layers: list
    module: Callable
    target: object = None
    loss: Callable | None = None
    loss_layer: str = "mse"
    batch: int = 2
    mode: str = "train"
    precision: str = "fp32"
    layout: str = "nchw"
    extra: dict = dataclasses.field(default_factory=dict)


IMAGES = {1: "[batch, 4, 16]", 2: "[batch, 4, 12, 10]", 3: "[batch, 4, 8, 6, 6]"}


def module_of(function):
    """A module that runs the function."""
    from torch import nn

    class Function(nn.Module):
        def forward(self, *inputs):
            return function(*inputs)

    return Function()


def between(name, rank, layer, build, channels=6, **settings):
    """The operator under test between two convolutions of that rank, so that its input needs a
    gradient; it gets 6 channels and gives `channels`. Several layers: a list."""
    from torch import nn

    convolution = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[rank]
    layers = layer if isinstance(layer, list) else [layer]
    return Case(name, {"x": IMAGES[rank]},
                [f"conv{rank}d: {{channels: 6, kernel: 3, padding: 1}}", *layers,
                 f"conv{rank}d: {{channels: 2, kernel: 1}}"],
                lambda: nn.Sequential(convolution(4, 6, 3, padding=1), build(),
                                      convolution(channels, 2, 1)), **settings)


def between_linears(name, features, layer, build, shape="[batch, 5, 4]", **settings):
    """The same between two linear layers; it gets and gives `features`."""
    from torch import nn

    return Case(name, {"x": shape},
                [f"linear: {{features: {features}}}", layer, "linear: {features: 3}"],
                lambda: nn.Sequential(nn.Linear(4, features), build(), nn.Linear(features, 3)),
                **settings)


def mean_square(output, target):
    import torch

    return torch.nn.functional.mse_loss(output, target)


def make_tensor(spec, batch):
    """A tensor of a description's input."""
    import torch

    shape, dtype = spec if isinstance(spec, tuple) else (spec, "float32")
    sizes = eval(shape, {"batch": batch})  # the shapes written in these scripts
    dtype = {"boolean": "bool"}.get(dtype, dtype)
    floating = torch.get_default_dtype()
    return torch.zeros(sizes, dtype=floating if dtype == "float32" else getattr(torch, dtype))


def input_entry(spec):
    shape, dtype = spec if isinstance(spec, tuple) else (spec, "float32")
    entry = {"shape": [word.strip() for word in shape.strip("[]").split(",") if word.strip()]}
    entry["shape"] = [int(word) if word.isdigit() else word for word in entry["shape"]]
    return entry if dtype == "float32" else {**entry, "dtype": dtype}


def described(case, target):
    """The description's text."""
    import yaml

    layers = [yaml.safe_load(layer) for layer in case.layers]
    if isinstance(layers[-1], str):
        layers[-1] = {layers[-1]: {}}
    attributes = next(iter(layers[-1].values()))
    last = attributes.setdefault("name", "last")
    inputs = {name: input_entry(spec) for name, spec in case.inputs.items()}
    inputs["target"] = input_entry(target)
    loss, *settings = yaml.safe_load(case.loss_layer).items() if ":" in case.loss_layer else (
        (case.loss_layer, {}),)
    assert not settings
    settings = {} if case.layout == "nchw" else {"train": {"layout": case.layout}}
    description = {"model": "case", **case.extra, **settings, "inputs": inputs, "layers": layers,
                   "loss": {loss[0]: {"from": [last, "target"], **loss[1]}}}
    return yaml.safe_dump(description, sort_keys=False, default_flow_style=None, width=200)


@dataclasses.dataclass(frozen=True)
class Run:
    """A case as step_trace and saved_tensors want it."""

    case: Case

    def autocast(self):
        import torch

        lower = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(self.case.precision)
        return fake_cuda.autocast(lower) if lower else contextlib.nullcontext()

    def output(self, model, inputs):
        with self.autocast():
            return model(*inputs)

    def loss(self, model, inputs, target):
        with self.autocast():
            output = model(*inputs)
            return output, (self.case.loss or mean_square)(output, target)


def inference_peaks(run, model, inputs, _target):
    """Two forward passes as in a script, without gradients, loss and target."""
    import step_trace
    import torch

    trace = step_trace.StorageTrace("cuda")
    trace.observe("[load]", [*model.parameters(), *model.buffers(), *inputs])
    with trace, torch.no_grad():
        for step in (1, 2):
            trace.enter_phase(step, "forward")
            output = run.output(model, inputs)
        trace.settle()
    del output
    return {"forward": trace.peaks[2, "forward"]["bytes"]}


def training_peaks(run, model, inputs, target):
    import step_trace

    trace = step_trace.run(run, model, inputs, target, "sgd", fake_cuda.backward_possible)
    return {phase: trace.peaks[2, phase]["bytes"] for phase in ("forward", "backward", "optimizer")}


def weights_apart(entry):
    """The sizes that a saved storage counts as: cuDNN wants the weights of a recurrent network in
    one buffer, and each of them counts."""
    import torch

    if entry["kind"] == "parameter":
        parts = [math.prod(use["shape"]) * getattr(torch, use["dtype"]).itemsize
                 for use in entry["saved_by"]]
        parts = [size for size in parts if size < entry["storage_bytes"]]
        if sum(parts) == entry["storage_bytes"]:
            return parts
    return [entry["storage_bytes"]]


def saved_totals(run, model, inputs, target):
    """[kind, bytes, count] of the saved storages."""
    import saved_tensors

    entries, unseen = saved_tensors.collect(run, model, inputs, target)
    recurrent = any("_flat_weight_refs" in vars(module) for module in model.modules())
    if unseen and not recurrent:
        raise AssertionError(f"{run.case.name}: {unseen} saved tensors passed no hook")
    counts = collections.Counter((entry["kind"], size) for entry in entries
                                 for size in weights_apart(entry) if size)
    return [[kind, size, count] for (kind, size), count in sorted(counts.items())]


def described_tensors(tensors):
    names = {"bool": "boolean"}
    types = [(list(t.shape), str(t.dtype).removeprefix("torch.")) for t in tensors]
    return sorted([shape, names.get(dtype, dtype)] for shape, dtype in types)


@contextlib.contextmanager
def made_in(precision):
    """While active, modules and inputs are made in the format of the precision."""
    import torch

    formats = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp64": torch.float64}
    torch.set_default_dtype(formats.get(precision, torch.float32))
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def record(case):
    """The row of a case; call it inside fake_cuda()."""
    import torch

    run = Run(case)
    training = case.mode == "train"
    with made_in(case.precision), torch.device("cuda"):
        model = case.module().train(training)
        inputs = [make_tensor(spec, case.batch) for spec in case.inputs.values()]
        if case.layout == "nhwc":
            channels_last.lay_out(model)
            inputs = [channels_last.laid_out(tensor) for tensor in inputs]
        with torch.no_grad():
            output = run.output(model, inputs)
        target = case.target or "[" + ", ".join(["batch", *map(str, output.shape[1:])]) + "]"
        made = make_tensor(target, case.batch)
    if case.target is None and output.shape != made.shape:
        raise AssertionError(f"{case.name}: output {list(output.shape)} wants a target of its own")
    row = {"name": case.name, "description": described(case, target), "batch": case.batch,
           "mode": case.mode, "precision": case.precision, "output_shape": list(output.shape),
           "parameters": described_tensors(model.parameters()),
           "buffers": described_tensors(model.buffers())}
    del output
    gc.collect()
    row["saved"] = saved_totals(run, model, inputs, made) if training else []
    row["peaks"] = (training_peaks if training else inference_peaks)(run, model, inputs, made)
    return row


def main(family, cases, refusal=None):
    """Write operators/<family>.json. `cases` is called under the shim, with torch imported.
    `refusal`: part of the message with which PyTorch refuses a case; the file then names those.
    With a word as argument: print the rows whose name contains it, and write nothing."""
    fake_cuda.relaunch_with_shim()

    import torch

    import json_format

    torch.set_num_threads(1)
    wanted = sys.argv[1] if len(sys.argv) > 1 else None
    rows, refused = [], []
    for case in cases():
        if wanted and wanted not in case.name:
            continue
        try:
            with fake_cuda.fake_cuda():
                rows.append(record(case))
        except Exception as error:
            if refusal is None or refusal not in str(error):
                raise RuntimeError(f"case '{case.name}'") from error
            refused.append(case.name)
        gc.collect()
    if wanted:
        for row in rows:
            print(row.pop("description"))
            print(json_format.render(row))
        return
    names = [row["name"] for row in rows]
    if len(set(names)) != len(names):
        raise AssertionError("case names must be unique")
    path = HERE / "operators" / f"{family}.json"
    json_format.write(path, {
        "schema_version": 1,
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        **({"refused": refused} if refusal else {}),
        "rows": rows})
    print(f"{path.name}: {len(rows)} rows", flush=True)
