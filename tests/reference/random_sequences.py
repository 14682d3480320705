"""Random layers over sequences: embeddings, recurrent networks, attention."""


def embedding(b, tokens, length):
    """Rows by index, and perhaps of positions."""
    from torch import nn

    count, features = b.number(5, 11), b.one_of(4, 6, 8)
    padding = 0 if b.chance(0.3) else None
    b.add("embedding", {"count": count, "features": features,
                        **({} if padding is None else {"padding_index": padding})},
          lambda: nn.Embedding(count, features, padding), (length, features), [tokens])
    if b.chance(0.4):
        import torch

        value = b.current
        positions = b.layer("positions", {"length": length},
                            lambda: lambda: torch.arange(length, device="cuda").unsqueeze(0), [])
        b.shapes[positions] = None
        b.add("embedding", {"count": length + 2, "features": features},
              lambda: nn.Embedding(length + 2, features), (length, features), [positions])
        b.add("add", {}, lambda: torch.add, (length, features), [value, b.current])


# Recurrent networks.

MODES = {"relu": 0, "tanh": 1, "lstm": 2, "gru": 3}


def recurrent_module(cell, inputs, hidden, projection, settings, states):
    """What nn.RNNBase.forward does on CUDA (see recurrent_saved.py)."""
    import fake_cuda
    import torch
    from torch import nn

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            build = {"lstm": nn.LSTM, "gru": nn.GRU}.get(cell, nn.RNN)
            more = {"proj_size": projection} if projection else {}
            if build is nn.RNN:
                more["nonlinearity"] = cell
            self.net = build(inputs, hidden, **settings, **more)
            fake_cuda.flatten_recurrent_weights(self.net)

        def forward(self, x):
            net = self.net
            count = net.num_layers * (2 if net.bidirectional else 1)
            batch = x.shape[0 if net.batch_first else 1]
            hx = x.new_zeros(count, batch, projection or hidden)
            cx = x.new_zeros(count, batch, hidden) if cell == "lstm" else None
            weights = net._flat_weights
            storage = weights[0].untyped_storage()
            buffer = weights[0].detach().as_strided(
                (storage.nbytes() // weights[0].element_size(),), (1,), 0)
            output, h, c, _, _ = torch.ops.aten._cudnn_rnn(
                x, weights, len(weights) // count, buffer, hx, cx, MODES[cell], hidden, projection,
                net.num_layers, net.batch_first, net.dropout, self.training, net.bidirectional, [],
                None)
            if not states:
                return output
            return (output, h, c) if cell == "lstm" else (output, h)

    return Recurrent()


def recurrent(b):
    if len(b.shape) != 2 or b.autocast:  # under autocast PyTorch asks cuDNN itself, on a device
        return False
    length, features = b.shape
    cell = b.one_of("lstm", "gru", "tanh", "relu")
    hidden, layers, both = b.number(2, 6), b.number(1, 2), b.chance(0.4)
    projection = b.number(1, hidden - 1) if cell == "lstm" and b.chance(0.3) else 0
    settings = {"bidirectional": both, "batch_first": b.chance(0.7), "bias": b.chance(0.8),
                "dropout": 0.2 if layers > 1 and b.chance(0.5) else 0}
    states = b.chance(0.3)
    attributes = {"hidden": hidden, "layers": layers, **settings, "states": states}
    if projection:
        attributes["projection"] = projection
    if cell in ("tanh", "relu"):
        attributes["nonlinearity"] = cell
    first = settings["batch_first"]
    if not first:
        b.add("transpose", {"axes": [1, 0, 2]}, lambda: lambda x: x.transpose(0, 1), b.shape)
    width = (2 if both else 1) * (projection or hidden)
    def make():
        return recurrent_module(cell, features, hidden, projection,
                                {"num_layers": layers, **settings}, states)

    operator = {"tanh": "rnn", "relu": "rnn"}.get(cell, cell)
    turned = not first
    if states:
        count = layers * (2 if both else 1)
        shapes = [(length, width), (count, projection or hidden), (count, hidden)]
        names = b.add_several(operator, attributes, make, shapes[:3 if cell == "lstm" else 2])
        b.current = b.one_of(*names)
        turned = turned or b.current != names[0]  # states are [layers, batch, hidden]
        for name in names:
            if turned or name != names[0]:
                b.shapes[name] = None if name != b.current else b.shapes[name]
    else:
        b.add(operator, attributes, make, (length, width), producer_saves=True)
    if turned:
        before = b.current
        b.add("transpose", {"axes": [1, 0, 2]}, lambda: lambda x: x.transpose(0, 1), b.shape)
        b.shapes[before] = None
    b.producer_saves = True


# Attention.

def heads_of(b, source, length, heads, features):
    """[batch, length, heads * features] as [batch, heads, length, features]."""
    b.add("reshape", {"shape": ["batch", length, heads, features]},
          lambda: lambda x: x.reshape(x.shape[0], length, heads, features),
          (length, heads, features), [source])
    return b.add("transpose", {"axes": [0, 2, 1, 3]}, lambda: lambda x: x.transpose(1, 2),
                 (heads, length, features))


def projected(b, source, width, bias):
    from torch import nn

    inputs = b.shapes[source][-1]
    return b.add("linear", {"features": width, "bias": bias},
                 lambda: nn.Linear(inputs, width, bias), (b.shapes[source][0], width), [source])


def query_key_value(b, heads, key_heads, features):
    """From three projections, or from parts of one; keys and values perhaps of another sequence."""
    source, bias = b.current, b.chance(0.6)
    length = b.shape[0]
    if heads == key_heads and b.chance(0.3):
        width = heads * features
        whole = projected(b, source, 3 * width, bias)
        parts = b.add_several("split", {"parts": 3, "axis": -1},
                              lambda: lambda x: tuple(x.chunk(3, -1)), [(length, width)] * 3,
                              [whole])
        return [heads_of(b, part, length, heads, features) for part in parts], length
    memories = b.others(lambda shape: len(shape) == 2)
    memory = b.one_of(*memories) if memories and b.chance(0.3) else source
    keys = b.shapes[memory][0]
    q = projected(b, source, heads * features, bias)
    k, v = (projected(b, memory, key_heads * features, bias) for _ in range(2))
    return [heads_of(b, q, length, heads, features), heads_of(b, k, keys, key_heads, features),
            heads_of(b, v, keys, key_heads, features)], keys


def rotated(b, query, key, length, features):
    import torch

    def table():
        from transformers import LlamaConfig
        from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

        class Table(LlamaRotaryEmbedding):
            def forward(self):
                positions = torch.arange(length, device="cuda").unsqueeze(0)
                return super().forward(torch.empty(0, dtype=dtype, device="cuda"), positions)

        dtype = torch.get_default_dtype()
        module = Table(LlamaConfig(hidden_size=features, num_attention_heads=1))
        for name, buffer in module._buffers.items():  # as `.to(dtype)`, which fake tensors refuse
            module._buffers[name] = buffer.to(dtype)
        return module

    def turn():
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

        return apply_rotary_pos_emb

    tables = b.add_several("rotary_table", {"length": length, "features": features}, table,
                           [(length, features)] * 2, [])
    shapes = [b.shapes[query], b.shapes[key]]
    inputs = [query, key, *tables]
    for name in tables:
        b.shapes[name] = None  # they have no batch
    return b.add_several("rotary", {}, turn, shapes, inputs)


def window_bias(b, heads, length):
    """Swin's, of torchvision or timm."""
    sides = {4: (2, 2), 6: (2, 3), 8: (2, 4), 9: (3, 3), 16: (4, 4)}[length]
    flat = b.chance(0.5)

    def make():
        import timm.models.swin_transformer as timm_swin
        from timm.models.swin_transformer import WindowAttention
        from torch import nn
        from torchvision.models.swin_transformer import ShiftedWindowAttention

        # Their initial values need numbers, which fake tensors have not.
        nn.init.trunc_normal_ = timm_swin.trunc_normal_ = lambda tensor, **_: tensor
        module = (ShiftedWindowAttention(heads, list(sides), [0, 0], heads) if flat else
                  WindowAttention(heads, heads, window_size=sides))
        del module.qkv, module.proj
        module.forward = module.get_relative_position_bias if flat else module._get_rel_pos_bias
        return module

    return b.add("relative_position_bias", {"heads": heads, "window": sides, "flat_index": flat},
                 make, (heads, length, length), [])


def bucket_bias(b, heads, queries, keys):
    """T5's."""
    both = b.chance(0.5)

    def make():
        from transformers import T5Config
        from transformers.models.t5.modeling_t5 import T5Attention

        config = T5Config(d_model=heads, d_kv=1, num_heads=heads, is_decoder=not both)
        module = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
        for name in "qkvo":
            delattr(module, name)
        module.forward = lambda: module.compute_bias(queries, keys)
        return module

    return b.add("relative_position_buckets", {"heads": heads, "queries": queries, "keys": keys,
                                               "bidirectional": both},
                 make, (heads, queries, keys), [])


def mask_of(b, heads, queries, keys, boolean=True):
    """What is added to the scores: the name of an input, or of a learned tensor; or None."""
    import torch
    from torch import nn

    kind = b.one_of("none", "none", "none", "float", "boolean", "parameter", "window", "buckets")
    if kind == "boolean" and not boolean:
        kind = "float"
    if kind == "window" and (queries != keys or queries not in (4, 6, 8, 9, 16)):
        kind = "buckets"
    if kind == "none":
        return None
    if kind == "window":
        return window_bias(b, heads, queries)
    if kind == "buckets":
        return bucket_bias(b, heads, queries, keys)
    shape = (b.one_of(1, heads), queries, keys)
    if kind == "parameter":
        class Bias(nn.Module):
            def __init__(self):
                super().__init__()
                self.bias = nn.Parameter(torch.zeros(1, *shape))

            def forward(self):
                return self.bias

        return b.add("parameter", {"shape": [1, *shape]}, Bias, shape, [])
    name = f"mask{len(b.inputs)}"
    return b.add_input(name, [b.one_of(1, "batch"), *shape],
                       "bool" if kind == "boolean" else "float32")


def fused_attention(b, q, k, v, keys):
    import torch.nn.functional as functional

    heads, queries, features = b.shapes[q]
    grouped = b.shapes[k][0] != heads
    settings = {"causal": b.chance(0.4)}
    mask = None if settings["causal"] or grouped else mask_of(b, heads, queries, keys)
    if b.chance(0.3) and b.mode == "train":
        settings["dropout"] = 0.1
    if b.chance(0.3):
        settings["scale"] = 0.5
    repeat = grouped and b.chance(0.5)
    if repeat:
        settings["grouped"] = "repeat"
    arguments = {"is_causal": settings["causal"], "dropout_p": settings.get("dropout", 0.0),
                 "scale": settings.get("scale")}
    if grouped and not repeat:
        arguments["enable_gqa"] = True
    groups = heads // b.shapes[k][0]

    def attend(q, k, v, mask=None):
        if repeat:
            from transformers.integrations.sdpa_attention import repeat_kv

            k, v = repeat_kv(k, groups), repeat_kv(v, groups)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, **arguments)

    b.add("scaled_dot_product_attention", settings, lambda: attend, (heads, queries, features),
          [q, k, v] + ([mask] if mask else []), producer_saves=True)


def written_out_attention(b, q, k, v, keys):
    """In single operations."""
    import torch
    from torch import nn

    heads, queries, features = b.shapes[q]
    q = b.add("scale", {"factor": 0.5}, lambda: lambda x: x * 0.5, b.shapes[q], [q])
    shape = (heads, queries, keys)
    scores = b.add("matmul", {"transpose_b": True},
                   lambda: lambda x, y: torch.matmul(x, y.transpose(-1, -2)), shape, [q, k])
    mask = mask_of(b, heads, queries, keys, boolean=False)
    if mask:
        scores = b.add("add", {}, lambda: torch.add, shape, [scores, mask])
    b.add("softmax", {}, lambda: lambda x: x.softmax(-1), shape, [scores])
    if b.chance(0.4):
        b.add("dropout", {"p": 0.1}, lambda: nn.Dropout(0.1), shape)
    b.add("matmul", {}, lambda: torch.matmul, (heads, queries, features), [b.current, v])


def attention(b):
    if len(b.shape) != 2 or b.shape[0] > 16:
        return False
    length = b.shape[0]
    heads, features = b.one_of(1, 2, 4), b.one_of(2, 3, 4, 8)
    fused = b.chance(0.7)
    key_heads = heads // 2 if fused and heads > 1 and b.chance(0.25) else heads
    (q, k, v), keys = query_key_value(b, heads, key_heads, features)
    if features % 2 == 0 and keys == length and b.chance(0.3):
        q, k = rotated(b, q, k, length, features)
    (fused_attention if fused else written_out_attention)(b, q, k, v, keys)
    b.add("transpose", {"axes": [0, 2, 1, 3]}, lambda: lambda x: x.transpose(1, 2),
          (length, heads, features))
    b.add("reshape", {"shape": ["batch", length, heads * features]},
          lambda: lambda x: x.reshape(x.shape[0], length, heads * features),
          (length, heads * features), producer_saves=True)


def self_attention(b):
    """Heads cut out of the last axis of a sequence, attention of the value with itself."""
    import torch.nn.functional as functional

    if len(b.shape) != 2 or b.shape[1] % 2 != 0:
        return False
    length, features = b.shape[0], b.shape[1] // 2
    causal = b.chance(0.5)
    q = heads_of(b, b.current, length, 2, features)
    b.add("scaled_dot_product_attention", {"causal": causal},
          lambda: lambda q, k, v: functional.scaled_dot_product_attention(q, k, v,
                                                                          is_causal=causal),
          (2, length, features), [q] * 3, producer_saves=True)


DRAWN = [recurrent, recurrent, attention, attention, attention, self_attention]
