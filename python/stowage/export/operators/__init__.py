"""The rules of ATen operations, by kind. Importing this registers all of them."""

from . import (arithmetic, attention, functions, indexing, losses, normalization, patterns,
               pointwise, pooling, products, recurrent, shapes, statistics, writes)

__all__ = ["arithmetic", "attention", "functions", "indexing", "losses", "normalization", "patterns",
           "pointwise", "pooling", "products", "recurrent", "shapes", "statistics", "writes"]
