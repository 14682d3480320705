// Operators that a description does not name: what serving puts into a model's graph
// (cached_model.hpp). They have rules for PyTorch's kernels only.
#pragma once

#include "estimator/model/operator_row.hpp"

namespace stowage::serving_rows {

/// Inputs: the new tokens' keys and values, [batch, heads, tokens, features]. Outputs: the keys and
/// values that attention reads. Attributes (integers): `past`, tokens cached before; `kept`, tokens
/// of a user that the cache has room for; `window`, of which attention reads as many; 0: all;
/// `users`, whose caches are there, 0: the batch's; `scale` (boolean). The outputs' type is that of
/// what is stored.
[[nodiscard]] const OperatorRow& dynamic_cache();
[[nodiscard]] const OperatorRow& static_cache();
[[nodiscard]] const OperatorRow& paged_cache();

/// transformers' quantised caches, of inputs as above; their outputs are as computed. Attributes:
/// `past`; of the first also `newest`, how many of the past tokens are kept as computed,
/// `residual`, how many there may be, `bits` of an element, `group`, elements that share a scale,
/// and `users`, the batch.
[[nodiscard]] const OperatorRow& packed_cache();
[[nodiscard]] const OperatorRow& fp8_cache();

/// What an earlier step has written, and this one only reads: keys and values of an encoder's
/// states. No inputs. Attributes: `counts` (boolean), a static layer's counter lies beside them.
[[nodiscard]] const OperatorRow& held_cache();

/// An encoder's last hidden states, which stay to the end of generation. Input: what the encoder
/// made; none: an earlier step has made them, and further outputs are the encoder's inputs, which
/// generate() holds too.
[[nodiscard]] const OperatorRow& encoder_states();

/// The first of its inputs; the others are held by variables until the kernel call before it has
/// run.
[[nodiscard]] const OperatorRow& held_variables();

/// Attention over a paged cache: query, keys, values -> [batch, heads, tokens, features].
[[nodiscard]] const OperatorRow& paged_attention();

/// transformers' boolean mask: [batch, 1, queries, keys], which all users share. Attributes:
/// `queries`, `keys`, `window`, `past`.
[[nodiscard]] const OperatorRow& cache_mask();

/// A view under another shape of as many elements: the attribute `shape`.
[[nodiscard]] const OperatorRow& same_elements();

/// The last position of an axis of positions, as a view: [batch, tokens, features] ->
/// [batch, 1, features].
[[nodiscard]] const OperatorRow& last_position();

}  // namespace stowage::serving_rows
