#!/usr/bin/env python3
"""What every optimizer keeps and takes: state tensors and the peak of optimizer.step().

    python optimizers.py            writes optimizers.json beside this file
    python optimizers.py --trace adam foreach weight_decay=0.01

Fake CUDA tensors (fake_cuda.py), so that each implementation takes its CUDA path; no GPU is used.
A case is an optimizer with settings, an implementation and the parameters' dtype; the parameters
are those of SHAPES, their gradients exist before the step. Figures are storage bytes on the device:
what is live beside parameters and gradients. Step 1 makes the state; `late` is step 8, where RAdam
has left its warm-up. `values` are numbers: updates of small parameters, step by step.
"""

import argparse
import gc
import os
import pathlib
import platform
import sys

import fake_cuda

HERE = pathlib.Path(__file__).parent
# A scalar, vectors, matrices, a convolution's filter; neither the largest nor the smallest is last.
SHAPES = {"scale": [], "stem.weight": [6, 4, 3, 3], "stem.bias": [6], "fc1.weight": [64, 48],
          "fc1.bias": [64], "table": [12, 33], "fc2.weight": [48, 64], "fc2.bias": [48]}
LATE_STEP = 8
DTYPES = ("float32", "bfloat16")


def catalogue():
    """name: (class, our setting names in the class's own words, implementations, settings)."""
    import timm.optim
    import torch
    import transformers.optimization

    loops, fused = ["for-loop", "foreach"], ["for-loop", "foreach", "fused"]
    decay, betas = {"weight_decay": 0.01}, [{}, {"weight_decay": 0.01}]
    decoupled = {"weight_decay": 0.01, "decoupled_weight_decay": True}
    torch_optim, timm_optim = torch.optim, timm.optim
    adam = [{}, decay, {"amsgrad": True}, {"amsgrad": True, **decay}]
    return {
        "sgd": (torch_optim.SGD, fused, [
            {}, decay, {"momentum": 0.9}, {"momentum": 0.9, **decay},
            {"momentum": 0.9, "nesterov": True}, {"momentum": 0.9, "nesterov": True, **decay}]),
        "adam": (torch_optim.Adam, fused, adam),
        "adamw": (torch_optim.AdamW, fused, [{}, {"weight_decay": 0.0}, {"amsgrad": True}]),
        "adagrad": (torch_optim.Adagrad, fused, betas),
        "rmsprop": (torch_optim.RMSprop, loops, [
            {}, decay, {"momentum": 0.9}, {"centered": True}, {"momentum": 0.9, "centered": True},
            {"momentum": 0.9, "centered": True, **decay}]),
        "adadelta": (torch_optim.Adadelta, loops, betas),
        "adamax": (torch_optim.Adamax, loops, betas),
        "nadam": (torch_optim.NAdam, loops, [*betas, decoupled]),
        "radam": (torch_optim.RAdam, loops, [*betas, decoupled]),
        "adafactor": (torch_optim.Adafactor, loops, betas),
        "lion": (timm_optim.Lion, loops, betas),
        "lamb": (timm_optim.Lamb, loops, [{}, {"weight_decay": 0.0}, {"max_grad_norm": None}]),
        "adafactor-transformers": (transformers.optimization.Adafactor, ["for-loop"], [
            {}, {"beta1": 0.9}, {"weight_decay": 0.01}, {"beta1": 0.9, "weight_decay": 0.01}]),
    }


# Numbers for the kernels: optimizer, our settings, and the class's own keywords.
VALUES = [
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True},
     {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("adam", {"amsgrad": True}, {"amsgrad": True}),
    ("adamw", {"amsgrad": True}, {"amsgrad": True}),
    ("adagrad", {}, {}),
    ("adagrad", {"learning_rate_decay": 0.1, "weight_decay": 0.01},
     {"lr_decay": 0.1, "weight_decay": 0.01}),
    ("rmsprop", {}, {}),
    ("rmsprop", {"momentum": 0.9, "weight_decay": 0.01}, {"momentum": 0.9, "weight_decay": 0.01}),
    ("rmsprop", {"centered": True}, {"centered": True}),
    ("rmsprop", {"momentum": 0.9, "centered": True, "smoothing": 0.9},
     {"momentum": 0.9, "centered": True, "alpha": 0.9}),
    ("adadelta", {}, {}),
    ("adadelta", {"smoothing": 0.8, "weight_decay": 0.01}, {"rho": 0.8, "weight_decay": 0.01}),
    ("adamax", {}, {}),
    ("adamax", {"weight_decay": 0.01}, {"weight_decay": 0.01}),
    ("nadam", {}, {}),
    ("nadam", {"weight_decay": 0.01}, {"weight_decay": 0.01}),
    ("nadam", {"weight_decay": 0.01, "decoupled_weight_decay": True},
     {"weight_decay": 0.01, "decoupled_weight_decay": True}),
    ("radam", {}, {}),
    ("radam", {"beta2": 0.8, "weight_decay": 0.01}, {"betas": (0.9, 0.8), "weight_decay": 0.01}),
    ("radam", {"beta2": 0.8, "weight_decay": 0.01, "decoupled_weight_decay": True},
     {"betas": (0.9, 0.8), "weight_decay": 0.01, "decoupled_weight_decay": True}),
    ("adafactor", {}, {}),
    ("adafactor", {"weight_decay": 0.01}, {"weight_decay": 0.01}),
    ("lion", {}, {}),
    ("lion", {"weight_decay": 0.01}, {"weight_decay": 0.01}),
    ("lamb", {"max_gradient_norm": 0.0}, {"max_grad_norm": None}),
    ("lamb", {"max_gradient_norm": 0.0, "weight_decay": 0.0},
     {"max_grad_norm": None, "weight_decay": 0.0}),
    ("adafactor-transformers", {}, {}),
    ("adafactor-transformers", {"beta1": 0.9, "weight_decay": 0.01},
     {"beta1": 0.9, "weight_decay": 0.01}),
    ("adafactor-transformers", {"learning_rate": 0.05}, {"lr": 0.05, "relative_step": False}),
]
VALUE_SHAPES = [[5], [3, 4], [2, 3, 2, 2]]
VALUE_STEPS = 6  # RAdam's variance counts from the sixth step on


def make_trace():
    """step_trace.StorageTrace for what fake tensors cannot: .item() is 1, and the fused kernels,
    which work in place and return nothing, are only recorded."""
    import torch

    import step_trace

    class Trace(step_trace.StorageTrace):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten._local_scalar_dense.default and args[0].is_cuda:
                return 1.0
            if func._opname.startswith("_fused_") and func._opname.endswith("_"):
                self.settle()
                return self.observe(str(func).removesuffix(".default"), [])
            return super().__torch_dispatch__(func, types, args, kwargs)

    return Trace("cuda")


def arguments(implementation):
    return {None: {}, "default": {}, "for-loop": {"foreach": False}, "foreach": {"foreach": True},
            "fused": {"fused": True}}[implementation]


def state_tensors(optimizer, parameters):
    """{name: {dtype, device, shapes}}: shapes by parameter, or "parameter" where all are like it."""
    import torch

    found = {}
    for name, parameter in parameters.items():
        for key, value in optimizer.state[parameter].items():
            if not isinstance(value, torch.Tensor):
                continue
            dtype = str(value.dtype).removeprefix("torch.")
            row = found.setdefault(key, {"dtype": dtype, "device": value.device.type, "shapes": {}})
            if (row["dtype"], row["device"]) != (dtype, value.device.type):
                raise AssertionError(f"{key} differs from parameter to parameter")
            row["shapes"][name] = list(value.shape)
    for row in found.values():
        if row["shapes"] == SHAPES:
            row["shapes"] = "parameter"
        elif row["shapes"] == {name: [] for name in SHAPES}:
            row["shapes"] = "scalar"
    return found


def measure(make, keywords, dtype, trace):
    """One case; `trace` keeps the events."""
    import torch

    parameters = {name: torch.nn.Parameter(torch.empty(shape, device="cuda", dtype=dtype))
                  for name, shape in SHAPES.items()}
    for parameter in parameters.values():
        parameter.grad = torch.empty_like(parameter)
    trace.observe("[parameters]", list(parameters.values()))
    trace.observe("[gradients]", [p.grad for p in parameters.values()])
    gc.collect()
    gc.disable()
    before = trace.live
    peaks = {}
    try:
        with trace:
            optimizer = make(list(parameters.values()), **keywords)
            trace.settle()
            constructed = trace.live - before
            for step in range(1, LATE_STEP + 1):
                trace.enter_phase(step, "optimizer")
                optimizer.step()
                if step == 1:
                    after_step = trace.live - before
                peaks[step] = trace.peaks[step, "optimizer"]["bytes"] - before
        trace.settle()
    finally:
        gc.enable()
    left = trace.live - before
    if left != after_step:
        raise AssertionError(f"{left} bytes after {LATE_STEP} steps, {after_step} after one")
    return {"state": state_tensors(optimizer, parameters), "constructed": constructed,
            "after_step": after_step, "step1_peak": peaks[1], "step2_peak": peaks[2],
            "late_peak": peaks[LATE_STEP],
            "operators": sorted({e[2].removeprefix("aten.") for e in trace.events
                                 if e[0] == LATE_STEP and not e[2].startswith("[")})}


def run_case(optimizer, implementation, settings, dtype_name):
    import torch

    make = catalogue()[optimizer][0]
    keywords = {**settings, **(arguments(implementation))}
    if optimizer == "adafactor-transformers":
        keywords = dict(settings)
    trace = make_trace()
    with fake_cuda.fake_cuda():
        figures = measure(make, keywords, getattr(torch, dtype_name), trace)
    return trace, figures


def default_implementation(name, implementations):
    """The one whose operators the default runs."""
    _, default = run_case(name, "default", {}, "float32")
    same = [i for i in implementations
            if run_case(name, i, {}, "float32")[1]["operators"] == default["operators"]]
    if len(same) != 1:
        raise AssertionError(f"{name}: the default is one of {same}")
    return same[0]


def value_case(name, settings, keywords, shape):
    """Updates of one parameter with given gradients, computed in float64 and rounded to float32."""
    import zlib

    import operators
    import torch

    label = f"{name} {settings} {shape}"
    generator = torch.Generator().manual_seed(zlib.crc32(label.encode()))
    parameter = operators.random(shape, generator).requires_grad_()
    optimizer = catalogue()[name][0]([parameter], **keywords)
    result = {"optimizer": name, "settings": settings,
              "parameter_before": operators.numbers(parameter), "steps": []}
    for _ in range(VALUE_STEPS):
        parameter.grad = operators.random(shape, generator)
        gradient = operators.numbers(parameter.grad)
        optimizer.step()
        state = {key: operators.numbers(value) for key, value in optimizer.state[parameter].items()
                 if isinstance(value, torch.Tensor) and value.dim() > 0}
        result["steps"].append({"gradient": gradient, "parameter": operators.numbers(parameter),
                                "state": state})
    return result


def versions():
    import timm
    import torch
    import transformers

    return {"python": platform.python_version(), "torch": torch.__version__,
            "timm": timm.__version__, "transformers": transformers.__version__}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace", nargs="+")
    options = parser.parse_args()
    os.environ["TIMM_FOREACH_CHUNK_SIZE"] = "0"  # else timm asks the device for its L2 cache
    fake_cuda.relaunch_with_shim()
    sys.path.insert(0, str(HERE))
    import torch

    import json_format

    torch.set_num_threads(1)
    if options.trace:
        name, implementation, *pairs = options.trace
        settings = {key: eval(value) for key, value in (p.split("=") for p in pairs)}
        trace, figures = run_case(name, implementation, settings, "float32")
        for event in trace.events:
            if event[0] in (0, 1, LATE_STEP):
                print(event)
        print(figures)
        return
    defaults, cases = {}, []
    for name, (_, implementations, all_settings) in catalogue().items():
        defaults[name] = default_implementation(name, implementations)
        for settings in all_settings:
            for implementation in implementations:
                for dtype in DTYPES:
                    _, figures = run_case(name, implementation, settings, dtype)
                    cases.append({"optimizer": name, "settings": settings,
                                  "implementation": implementation, "dtype": dtype, **figures})
        print(f"{name}: {defaults[name]} by default", flush=True)
    json_format.write(HERE / "optimizers.json", {
        "schema_version": 1, "versions": versions(), "shapes": SHAPES,
        "defaults": defaults, "cases": cases,
        "values": [value_case(*row, shape) for row in VALUES for shape in VALUE_SHAPES]})
    print(f"optimizers.json: {len(cases)} cases", flush=True)


if __name__ == "__main__":
    main()
