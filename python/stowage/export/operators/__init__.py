"""The rules of ATen operations, by kind. Importing this registers all of them."""

from . import (arithmetic, attention, losses, normalization, patterns, pointwise, pooling, products,
               recurrent, shapes)

__all__ = ["arithmetic", "attention", "losses", "normalization", "patterns", "pointwise", "pooling",
           "products", "recurrent", "shapes"]
