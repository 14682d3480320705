"""Fused attention."""

from ..catalogue import ATTENTION_AXES
from ..layers import Unsupported, rule


@rule("scaled_dot_product_attention")
def attention(c, op, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    axes = {len(c.real(value).shape) for value in (query, key, value)}
    if len(axes) > 1 or axes.isdisjoint(ATTENTION_AXES):
        raise Unsupported("aten.scaled_dot_product_attention of other than three to five axes")
    inputs = [query, key, value] + ([attn_mask] if attn_mask is not None else [])
    c.emit("scaled_dot_product_attention", inputs, op.outputs[:1],
           {"causal": bool(is_causal), "dropout": dropout_p, "scale": scale or 0})
