"""LSTM, GRU and RNN on cuDNN: operators/recurrent.json (see operator_saved.py).

Only nn.LSTM reaches cuDNN's operator under fake CUDA (fake_cuda.cudnn_lstm), so that the others call
it here in the same way. The weights are listed one by one, though PyTorch has them in one buffer;
the reserve counts 0 bytes."""

import operator_saved
from operator_saved import Case

MODES = {"relu": 0, "tanh": 1, "lstm": 2, "gru": 3}


def cases():
    import torch
    from torch import nn

    import fake_cuda

    class Recurrent(nn.Module):
        """What nn.RNNBase.forward does on CUDA, returning the sequence only."""

        def __init__(self, cell, features, hidden, layers=1, projection=0, **settings):
            super().__init__()
            self.first = nn.Linear(5, features)
            build = {"lstm": nn.LSTM, "gru": nn.GRU}.get(cell, nn.RNN)
            more = {"proj_size": projection} if projection else {}
            if build is nn.RNN:
                more["nonlinearity"] = cell
            self.cell, self.projection = cell, projection
            self.net = build(features, hidden, layers, **settings, **more)
            fake_cuda.flatten_recurrent_weights(self.net)
            directions = 2 if self.net.bidirectional else 1
            self.last = nn.Linear(directions * (projection or hidden), 3)

        def run(self, x):
            net = self.net
            batch = x.shape[0 if net.batch_first else 1]
            states = net.num_layers * (2 if net.bidirectional else 1)
            hx = x.new_zeros(states, batch, self.projection or net.hidden_size)
            cx = x.new_zeros(states, batch, net.hidden_size) if self.cell == "lstm" else None
            weights = net._flat_weights
            storage = weights[0].untyped_storage()
            buffer = weights[0].detach().as_strided((storage.nbytes() // 4,), (1,), 0)
            per_layer = len(weights) // states
            return torch.ops.aten._cudnn_rnn(
                x, weights, per_layer, buffer, hx, cx, MODES[self.cell], net.hidden_size,
                self.projection, net.num_layers, net.batch_first, net.dropout, self.training,
                net.bidirectional, [], None)[0]

        def forward(self, x):
            return self.last(self.run(self.first(x)))

    def case(name, layer, cell, mode="train", **settings):
        return Case(name, {"x": "[7, batch, 5]"},
                    ["linear: {features: 6}", layer, "linear: {features: 3}"],
                    lambda: Recurrent(cell, 6, 4, **settings), target="[7, batch, 3]", mode=mode)

    yield case("lstm", "lstm: {hidden: 4}", "lstm")
    yield case("lstm in inference", "lstm: {hidden: 4}", "lstm", mode="inference")
    yield case("lstm of two layers, both directions, dropout",
               "lstm: {hidden: 4, layers: 2, bidirectional: true, dropout: 0.2}", "lstm", layers=2,
               bidirectional=True, dropout=0.2)
    yield case("lstm without bias", "lstm: {hidden: 4, bias: false}", "lstm", bias=False)
    yield case("lstm with projection", "lstm: {hidden: 4, projection: 2}", "lstm", projection=2)
    yield case("gru", "gru: {hidden: 4, layers: 3}", "gru", layers=3)
    yield case("gru, both directions", "gru: {hidden: 4, bidirectional: true}", "gru",
               bidirectional=True)
    yield case("rnn", "rnn: {hidden: 4}", "tanh")
    yield case("rnn with relu", "rnn: {hidden: 4, layers: 2, nonlinearity: relu}", "relu", layers=2)


if __name__ == "__main__":
    operator_saved.main("recurrent", cases)
