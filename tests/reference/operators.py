"""Small cases with outputs and gradients for every operator, written as operators.json.

Inputs are float32 numbers; the results are computed in float64 by PyTorch on the CPU and rounded to
float32 at the end, so that they are closer to the truth than any float32 kernel.
"""

import zlib

import torch

import json_format
import operator_cases

SIGNIFICANT_DIGITS = 9


def numbers(tensor):
    """{"shape", "dtype", "values"}: row-major values, floats as float32 with 9 digits."""
    flat = tensor.detach().reshape(-1)
    if tensor.is_floating_point():
        values = [float(f"{x:.{SIGNIFICANT_DIGITS}g}") for x in flat.to(torch.float32).tolist()]
        return {"shape": list(tensor.shape), "dtype": "float32", "values": values}
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"shape": list(tensor.shape), "dtype": dtype, "values": flat.tolist()}


def random(shape, generator):
    """Standard normal float32 values, held as float64."""
    return torch.randn(*shape, generator=generator).to(torch.float64)


def gradients(output, output_gradient, tensors):
    """The gradient of each tensor, None for integers."""
    wanted = [t for t in tensors if t.requires_grad]
    found = iter(torch.autograd.grad(output, wanted, output_gradient))
    return [next(found) if t.requires_grad else None for t in tensors]


def operator_case(case):
    """Evaluate one case of operator_cases.CASES."""
    generator = torch.Generator().manual_seed(zlib.crc32(case.name.encode()))
    inputs = [x.clone() if isinstance(x, torch.Tensor) else random(x, generator)
              for x in case.inputs]
    parameters = {name: random(shape, generator) for name, shape in case.parameters.items()}
    buffers = {name: tensor.clone().to(torch.float64) for name, tensor in case.buffers.items()}
    for tensor in [*inputs, *parameters.values()]:
        tensor.requires_grad_(tensor.is_floating_point() and not case.is_target(tensor, inputs))
    before = {name: numbers(tensor) for name, tensor in buffers.items()}
    output = case.run(inputs, parameters, buffers)
    seed = torch.ones_like(output) if output.dim() == 0 else random(output.shape, generator)
    found = gradients(output, seed, [*inputs, *parameters.values()])
    input_gradients = found[:len(inputs)]
    result = {
        "name": case.name, "op": case.op, "attributes": case.attributes,
        "inputs": [numbers(x) for x in inputs],
        "parameters": {name: numbers(p) for name, p in parameters.items()},
    }
    if buffers:
        result["buffers_before"] = before
        result["buffers_after"] = {name: numbers(b) for name, b in buffers.items()}
    result["output"] = numbers(output)
    result["grad_output"] = numbers(seed)
    result["grad_inputs"] = [None if g is None else numbers(g) for g in input_gradients]
    result["grad_parameters"] = {name: numbers(g) for name, g in
                                 zip(parameters, found[len(inputs):])}
    return result


OPTIMIZERS = [
    ("sgd", "sgd", {"lr": 0.1}),
    ("sgd with weight decay", "sgd", {"lr": 0.1, "weight_decay": 0.01}),
    ("sgd momentum", "sgd", {"lr": 0.1, "momentum": 0.9}),
    ("sgd momentum with weight decay", "sgd",
     {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("sgd nesterov with weight decay", "sgd",
     {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("sgd momentum with dampening", "sgd", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    ("adam", "adam", {"lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-8}),
    ("adam with weight decay", "adam",
     {"lr": 0.01, "betas": [0.8, 0.99], "eps": 1e-6, "weight_decay": 0.01}),
    ("adamw", "adamw", {"lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}),
    ("adamw without weight decay", "adamw",
     {"lr": 0.01, "betas": [0.8, 0.99], "eps": 1e-6, "weight_decay": 0.0}),
]
OPTIMIZER_CLASSES = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def optimizer_case(name, op, attributes, steps=3):
    """Three updates of a 3x4 parameter with given gradients; state after each."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    parameter = random((3, 4), generator).requires_grad_()
    optimizer = OPTIMIZER_CLASSES[op]([parameter], **attributes)
    result = {"name": name, "op": op, "attributes": attributes,
              "parameter_before": numbers(parameter), "steps": []}
    for _ in range(steps):
        parameter.grad = random((3, 4), generator)
        gradient = numbers(parameter.grad)
        optimizer.step()
        state = {key: numbers(value) for key, value in optimizer.state[parameter].items()
                 if isinstance(value, torch.Tensor) and value.dim() > 0}
        result["steps"].append({"gradient": gradient, "parameter": numbers(parameter),
                                "state": state})
    return result


def write(path):
    torch.use_deterministic_algorithms(True)
    cases = [operator_case(case) for case in operator_cases.CASES]
    optimizers = [optimizer_case(*row) for row in OPTIMIZERS]
    torch.use_deterministic_algorithms(False)
    names = [c["name"] for c in cases + optimizers]
    if len(set(names)) != len(names):
        raise AssertionError("case names must be unique")
    json_format.write(path, {"schema_version": 1, "torch": torch.__version__,
                             "cases": cases, "optimizers": optimizers})
    print(f"{path.name}: {len(cases)} cases, {len(optimizers)} optimizers", flush=True)
