"""Recurrent networks: one layer for all of nn.LSTM, nn.GRU or nn.RNN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..layers import Conversion, Unsupported, rule
from ..sizes import fixed

if TYPE_CHECKING:
    from ..capture import Operation, Value

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@rule(*GATES)
def recurrent(c: Conversion, op: Operation, input: Value, hx: Value | list[Value],
              params: list[Value], has_biases: bool, num_layers: int, dropout: float, train: bool,
              bidirectional: bool, batch_first: bool) -> None:
    """Initial states are left out where they are constants: zeros that the model makes."""
    states = hx if isinstance(hx, list) else [hx]
    weights = [c.real(value) for value in params]
    recurrent_weight = weights[1]
    hidden = fixed(recurrent_weight.shape)[0] // GATES[op.name]
    if recurrent_weight.shape[1] != hidden:
        raise Unsupported(f"aten.{op.name} with a projection")
    attributes: dict[str, Any] = {"hidden": hidden, "layers": num_layers, "bidirectional": bidirectional,
                  "dropout": dropout if train else 0, "batch_first": batch_first,
                  "bias": has_biases}
    if op.name.startswith("rnn"):
        attributes["nonlinearity"] = op.name.partition("_")[2]
    outputs = op.outputs[:1]
    if any(v.readers or v in c.captured.outputs for v in op.outputs[1:]):
        attributes["states"] = True
        outputs = op.outputs
    given = [] if all(map(c.is_constant, states)) else states
    c.emit(op.name.partition("_")[0], [input, *given], outputs, attributes,
           list(zip(names_of(num_layers, bidirectional, has_biases), weights)))


def names_of(layers: int, bidirectional: bool, has_biases: bool) -> list[str]:
    """PyTorch's names, in its order."""
    kinds = ["weight_ih", "weight_hh"] + (["bias_ih", "bias_hh"] if has_biases else [])
    directions = ("", "_reverse") if bidirectional else ("",)
    return [f"{kind}_l{layer}{direction}" for layer in range(layers) for direction in directions
            for kind in kinds]
