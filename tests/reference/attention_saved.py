"""Attention, its positions and its masks: operators/attention.json (see operator_saved.py).

The fused kernels' insides are not seen: their scratch is by formula, and left out of the comparison.
The attention in tensor operations adds its mask in place, which it does not for fake tensors."""

import operator_saved
from operator_saved import Case

HEADS, FEATURES, LENGTH = 4, 8, 16
WIDTH = HEADS * FEATURES


def heads_of(name, source, length, heads, features):
    """Two layers: [batch, length, heads * features] as [batch, heads, length, features]."""
    return [f"reshape: {{name: {name}_split, from: {source}, "
            f"shape: [batch, {length}, {heads}, {features}]}}",
            f"transpose: {{name: {name}, axes: [0, 2, 1, 3]}}"]


def description(attention, heads=HEADS, key_heads=HEADS, features=FEATURES, length=LENGTH,
                extra=(), keys=LENGTH):
    width = heads * features
    return [f"linear: {{name: q_proj, from: x, features: {width}}}",
            f"linear: {{name: k_proj, from: {'x' if keys == length else 'memory'}, "
            f"features: {key_heads * features}}}",
            f"linear: {{name: v_proj, from: {'x' if keys == length else 'memory'}, "
            f"features: {key_heads * features}}}",
            *heads_of("q", "q_proj", length, heads, features),
            *heads_of("k", "k_proj", keys, key_heads, features),
            *heads_of("v", "v_proj", keys, key_heads, features),
            *extra, attention,
            "transpose: {axes: [0, 2, 1, 3]}",
            f"reshape: {{shape: [batch, {length}, {width}]}}",
            "linear: {features: 4}"]


def gpt_oss_cases():
    """Tables of positions with each angle once, and sinks beside the scores."""
    import torch
    from torch import nn

    class Turned(nn.Module):
        def __init__(self):
            from transformers import GptOssConfig
            from transformers.models.gpt_oss.modeling_gpt_oss import GptOssRotaryEmbedding

            super().__init__()
            self.table = GptOssRotaryEmbedding(GptOssConfig(
                head_dim=FEATURES, rope_parameters={"rope_type": "default", "rope_theta": 1e4}))
            for name, buffer in self.table._buffers.items():  # as `.to(dtype)`
                self.table._buffers[name] = buffer.to(torch.get_default_dtype())

        def forward(self, x):
            from transformers.models.gpt_oss.modeling_gpt_oss import _apply_rotary_emb

            cos, sin = self.table(x, torch.arange(x.shape[2], device=x.device).unsqueeze(0))
            return _apply_rotary_emb(x, cos.unsqueeze(1), sin.unsqueeze(1))

    class Sinks(nn.Module):
        def __init__(self):
            super().__init__()
            self.sinks = nn.Parameter(torch.zeros(HEADS))

        def forward(self, scores):
            sinks = self.sinks.reshape(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[2], -1)
            joined = torch.cat([scores, sinks], dim=-1)
            joined = joined - joined.max(dim=-1, keepdim=True).values
            return torch.softmax(joined, dim=-1, dtype=joined.dtype)[..., :-1]

    def between(name, features, layers, build, **settings):
        return Case(name, {"x": f"[batch, {HEADS}, 5, 4]"},
                    [f"linear: {{name: given, features: {features}}}", *layers, "linear: {features: 3}"],
                    lambda: nn.Sequential(nn.Linear(4, features), build(), nn.Linear(features, 3)),
                    **settings)

    turned = [f"rotary_table: {{name: table, length: 5, features: {FEATURES}, repeated: false}}",
              "rotary: {from: [given, table.0, table.1]}"]
    weights = [f"parameter: {{name: sinks, shape: [{HEADS}]}}",
               "sink_softmax: {from: [given, sinks]}"]
    for precision in ("fp32", "bf16", "amp-bf16"):
        for mode in ("train", "inference"):
            if precision != "amp-bf16":  # tables of the layer's format there, of float32 in a model
                yield between(f"rotary of halves, {precision}, {mode}", FEATURES, turned, Turned,
                              precision=precision, mode=mode)
            yield between(f"sinks, {precision}, {mode}", 6, weights, Sinks, precision=precision,
                          mode=mode)


def cases():
    import torch
    import torch.nn.functional as functional
    from torch import nn

    aten = torch.ops.aten

    def math(q, k, v, mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        return aten._scaled_dot_product_attention_math(
            q, k, v, mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa)[0]

    def cudnn(q, k, v, mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        return aten._scaled_dot_product_cudnn_attention(
            q, k, v, mask, True, dropout_p, is_causal, False, scale=scale)[0]

    class Attention(nn.Module):
        def __init__(self, call, heads=HEADS, key_heads=HEADS, features=FEATURES, before=None):
            super().__init__()
            self.call, self.features = call, features
            self.q = nn.Linear(WIDTH, heads * features)
            self.k = nn.Linear(WIDTH, key_heads * features)
            self.v = nn.Linear(WIDTH, key_heads * features)
            self.before = before() if before else None
            self.out = nn.Linear(heads * features, 4)

        def split(self, x):
            return x.view(*x.shape[:2], -1, self.features).transpose(1, 2)

        def projected(self, x, *others):
            memory = others[0] if others and others[0].dim() == 3 else x
            return self.split(self.q(x)), self.split(self.k(memory)), self.split(self.v(memory))

        def forward(self, x, *others):
            # No variable of this function holds query, key and value while the last layer runs.
            return self.out(self.call(self, *self.projected(x, *others), *others)
                            .transpose(1, 2).reshape(*x.shape[:2], -1))

    x = {"x": f"[batch, {LENGTH}, {WIDTH}]"}
    sdpa = "scaled_dot_product_attention"

    def case(name, settings, call, inputs=x, build=None, precision="fp32", **shape):
        sources = shape.pop("sources", "q, k, v")
        text = f"{sdpa}: {{from: [{sources}]{settings}}}"
        return Case(name, inputs, description(text, **shape),
                    lambda: Attention(call, **(build or {})), precision=precision)

    def plain(function, **settings):
        return lambda self, q, k, v, *others: function(q, k, v, **settings)

    def auto(**settings):
        return lambda self, q, k, v, *others: functional.scaled_dot_product_attention(
            q, k, v, **settings)

    yield case("efficient", "", auto())
    yield case("efficient, causal, dropout", ", causal: true, dropout: 0.1",
               auto(is_causal=True, dropout_p=0.1))
    yield case("efficient, scale", ", scale: 0.5", auto(scale=0.5))
    yield case("efficient, cross attention", "", auto(),
               inputs={**x, "memory": f"[batch, 12, {WIDTH}]"}, keys=12)

    def masked(self, q, k, v, mask):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    for name, mask in (("aligned mask", f"[1, {HEADS}, {LENGTH}, {LENGTH}]"),
                       ("full mask", f"[batch, {HEADS}, {LENGTH}, {LENGTH}]"),
                       ("mask of two axes", f"[{LENGTH}, {LENGTH}]")):
        yield case(f"efficient, {name}", "", masked, inputs={**x, "mask": mask},
                   sources="q, k, v, mask")
    short = {"x": f"[batch, 9, {WIDTH}]", "mask": "[batch, 1, 9, 9]"}
    yield case("efficient, unaligned mask", "", masked, inputs=short, sources="q, k, v, mask",
               length=9, keys=9)
    yield case("efficient, boolean mask", "", masked,
               inputs={**x, "mask": (f"[batch, 1, {LENGTH}, {LENGTH}]", "bool")},
               sources="q, k, v, mask")

    class Bias(nn.Module):
        def __init__(self, shape):
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(shape))

        def forward(self):
            return self.bias

    def biased(self, q, k, v, *others):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=self.before())

    # Not of 9: a fake tensor's storage ends with the last element of a cut gradient's last row.
    yield case("efficient, learned bias", "", biased, sources="q, k, v, bias",
               build={"before": lambda: Bias((1, HEADS, LENGTH, LENGTH))},
               extra=[f"parameter: {{name: bias, shape: [1, {HEADS}, {LENGTH}, {LENGTH}]}}"])

    yield case("math", ", implementation: math", plain(math))
    yield case("math, dropout, scale", ", implementation: math, dropout: 0.2, scale: 0.25",
               plain(math, dropout_p=0.2, scale=0.25))
    yield case("math, grouped", ", implementation: math", plain(math, enable_gqa=True),
               build={"key_heads": 2}, key_heads=2)

    def repeat_kv(self, q, k, v, *others):
        from transformers.integrations.sdpa_attention import repeat_kv as repeat

        return functional.scaled_dot_product_attention(q, repeat(k, 2), repeat(v, 2))

    yield case("efficient, grouped", "", auto(enable_gqa=True), build={"key_heads": 2},
               key_heads=2)
    yield case("efficient, repeated heads", ", grouped: repeat", repeat_kv,
               build={"key_heads": 2}, key_heads=2)
    for precision in ("bf16",):
        yield case("flash", "", auto(), precision=precision)
        yield case("flash, causal, dropout", ", causal: true, dropout: 0.1",
                   auto(is_causal=True, dropout_p=0.1), precision=precision)
        yield case("flash, grouped", "", auto(enable_gqa=True), build={"key_heads": 2},
                   key_heads=2, precision=precision)
        yield case("flash, padded heads", "", auto(), build={"features": 6}, features=6,
                   precision=precision)
        yield case("cudnn", ", implementation: cudnn", plain(cudnn), precision=precision)
        yield case("math in bf16", ", implementation: math", plain(math), precision=precision)
        yield case("efficient in bf16, mask", "", masked,
                   inputs={**x, "mask": f"[1, 1, {LENGTH}, {LENGTH}]"},
                   sources="q, k, v, mask", precision=precision)

    # Rotary positions.
    def rotate(self, q, k, v, *others):
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

        cos, sin = self.before(v, torch.arange(v.shape[2], device=v.device).unsqueeze(0))
        q, k = apply_rotary_pos_emb(q, k, cos, sin)
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def llama_rotary():
        from transformers import LlamaConfig
        from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

        module = LlamaRotaryEmbedding(LlamaConfig(hidden_size=WIDTH, num_attention_heads=HEADS))
        for name, buffer in module._buffers.items():  # as `.to(dtype)`, which fake tensors refuse
            module._buffers[name] = buffer.to(torch.get_default_dtype())
        return module

    rotary = [f"rotary_table: {{name: table, length: {LENGTH}, features: {FEATURES}}}",
              "rotary: {name: turned, from: [q, k, table.0, table.1]}"]
    for precision in ("fp32", "bf16"):
        yield case(f"rotary in {precision}", ", causal: true", rotate,
                   build={"before": llama_rotary}, sources="turned.0, turned.1, v", extra=rotary,
                   precision=precision)

    yield from gpt_oss_cases()

    # Relative positions.
    def swin_bias(flat):
        def build():
            import timm.models.swin_transformer as timm_swin
            from timm.models.swin_transformer import WindowAttention
            from torchvision.models.swin_transformer import ShiftedWindowAttention

            # Their initial values need numbers, which fake tensors have not.
            nn.init.trunc_normal_ = timm_swin.trunc_normal_ = lambda tensor, **_: tensor
            if flat:
                module = ShiftedWindowAttention(WIDTH, [4, 4], [0, 0], HEADS)
                del module.qkv, module.proj
                module.forward = module.get_relative_position_bias
            else:
                module = WindowAttention(WIDTH, HEADS, window_size=(4, 4))
                del module.qkv, module.proj
                module.forward = module._get_rel_pos_bias
            return module
        return build

    class Eager(Attention):
        """No variable holds a projection while another operation runs, as in the description."""

        def forward(self, x):
            return self.out(functional.softmax(
                (self.split(self.q(x)) * FEATURES ** -0.5).matmul(
                    self.split(self.k(x)).transpose(-2, -1)) + self.before(), dim=-1)
                .matmul(self.split(self.v(x))).transpose(1, 2).reshape(*x.shape[:2], -1))

    for name, flat in (("torchvision", True), ("timm", False)):
        flag = "" if flat else ", flat_index: false"
        yield Case(f"Swin's bias, eager attention, {name}", x, [
            f"linear: {{name: q_proj, from: x, features: {WIDTH}}}",
            *heads_of("q", "q_proj", LENGTH, HEADS, FEATURES),
            f"scale: {{name: q_scaled, from: q, factor: {FEATURES ** -0.5}}}",
            f"linear: {{name: k_proj, from: x, features: {WIDTH}}}",
            *heads_of("k", "k_proj", LENGTH, HEADS, FEATURES),
            "matmul: {name: products, from: [q_scaled, k], transpose_b: true}",
            f"relative_position_bias: {{name: bias, heads: {HEADS}, window: [4, 4]{flag}}}",
            "add: {name: scores, from: [products, bias]}",
            "softmax: {name: probabilities}",
            f"linear: {{name: v_proj, from: x, features: {WIDTH}}}",
            *heads_of("v", "v_proj", LENGTH, HEADS, FEATURES),
            "matmul: {name: attended, from: [probabilities, v]}",
            "transpose: {axes: [0, 2, 1, 3]}",
            f"reshape: {{shape: [batch, {LENGTH}, {WIDTH}]}}",
            "linear: {features: 4}"],
            lambda flat=flat: Eager(None, before=swin_bias(flat)))

    def t5_bias(decoder):
        def build():
            from transformers import T5Config
            from transformers.models.t5.modeling_t5 import T5Attention

            config = T5Config(d_model=WIDTH, d_kv=FEATURES, num_heads=HEADS, is_decoder=decoder)
            module = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
            for name in "qkvo":
                delattr(module, name)
            module.forward = lambda n: module.compute_bias(n, n)
            return module
        return build

    def t5(causal):
        def call(self, q, k, v, *others):
            from transformers.integrations.sdpa_attention import create_position_bias_mask

            bias = self.before(q.shape[2])
            mask = create_position_bias_mask(bias, None, causal, q, k)
            return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)
        return call

    for name, decoder in (("encoder", False), ("decoder", True)):
        flags = ", bidirectional: false" if decoder else ""
        yield case(f"T5's bias, {name}", ", scale: 1, copy_bias: true" +
                   (", causal: true" if decoder else ""), t5(decoder),
                   build={"before": t5_bias(decoder)}, sources="q, k, v, bias",
                   extra=[f"relative_position_buckets: {{name: bias, heads: {HEADS}, "
                          f"queries: {LENGTH}, keys: {LENGTH}{flags}}}"])

    # Learned tensors, as ViT has them.
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(6, WIDTH)
            self.token = nn.Parameter(torch.zeros(1, 1, WIDTH))
            self.position = nn.Parameter(torch.zeros(1, 9, WIDTH))
            self.last = nn.Linear(WIDTH, 4)

        def forward(self, x):
            return self.last(torch.cat([self.token.expand(x.shape[0], -1, -1), self.first(x)],
                                       dim=1) + self.position)

    yield Case("class token and positions", {"x": "[batch, 8, 6]"}, [
        f"parameter: {{name: token, shape: [1, 1, {WIDTH}]}}",
        f"expand: {{name: tokens, shape: [batch, 1, {WIDTH}]}}",
        f"linear: {{name: first, from: x, features: {WIDTH}}}",
        "concat: {name: joined, from: [tokens, first], axis: 1}",
        f"parameter: {{name: position, shape: [1, 9, {WIDTH}]}}",
        "add: {from: [joined, position]}", "linear: {features: 4}"], Tokens)


if __name__ == "__main__":
    operator_saved.main("attention", cases)
