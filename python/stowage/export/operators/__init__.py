"""The rules of ATen operations, by kind. Importing this registers all of them."""

from . import (
               arithmetic,
               functions,
               indexing,
               losses,
               normalization,
               patterns,
               pointwise,
               pooling,
               products,
               recurrent,
               shapes,
               statistics,
               writes,
)

__all__ = ["arithmetic", "functions", "indexing", "losses", "normalization", "patterns",
           "pointwise", "pooling", "products", "recurrent", "shapes", "statistics", "writes"]
