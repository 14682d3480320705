"""Recurrent networks."""

from ..layers import Unsupported, rule


@rule("lstm", "gru", "rnn_tanh", "rnn_relu")
def recurrent(c, op, **_):
    raise Unsupported(f"aten.{op.name}")
