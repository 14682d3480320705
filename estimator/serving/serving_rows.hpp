// Operators that only serving inserts into a model's graph (cached_model.hpp); descriptions cannot
// name them. They have rules for PyTorch's kernels only.
#pragma once

#include "estimator/model/operator_row.hpp"

namespace stowage::serving_rows {

/// The caches. Inputs: the new tokens' keys and values, [batch, heads, tokens, features]. Outputs:
/// the keys and values that attention reads, in the stored type. Attributes (integers): `past`,
/// tokens that are already cached; `kept`, tokens of a user for which the cache has room; `window`,
/// tokens that attention reads, 0: all; `users` whose caches are in memory, 0: those of the batch;
/// `scale` (boolean).
[[nodiscard]] const OperatorRow& dynamic_cache();
[[nodiscard]] const OperatorRow& static_cache();
[[nodiscard]] const OperatorRow& paged_cache();

/// transformers' quantised caches, with inputs as above; their outputs have the computed type.
/// Attributes: `past`; packed_cache also has `newest`, the number of past tokens that are not
/// quantised, `residual`, the largest such number, `bits` of an element, `group`, elements that
/// share a scale, and `users`, the batch.
[[nodiscard]] const OperatorRow& packed_cache();
[[nodiscard]] const OperatorRow& fp8_cache();

/// A cache that an earlier step has written and this one only reads: keys and values of an
/// encoder's states. No inputs. Attribute: `counts` (boolean), a static layer's counter is stored
/// with them.
[[nodiscard]] const OperatorRow& held_cache();

/// An encoder's last hidden states, which are kept to the end of generation. Input: the encoder's
/// result. Without an input an earlier step has computed them, and the further outputs are the
/// encoder's inputs, which generate() also holds.
[[nodiscard]] const OperatorRow& encoder_states();

/// Returns its first input; its other inputs are variables that live until the previous kernel call
/// has run.
[[nodiscard]] const OperatorRow& held_variables();

/// Attention over a paged cache: query, keys, values, and sinks if there are -> [batch, heads,
/// tokens, features].
[[nodiscard]] const OperatorRow& paged_attention();

/// transformers' boolean mask: [batch, 1, queries, keys], which all users share. Attributes:
/// `queries`, `keys`, `window`, `past`.
[[nodiscard]] const OperatorRow& cache_mask();

/// A view with another shape of the same number of elements: the attribute `shape`.
[[nodiscard]] const OperatorRow& same_elements();

/// The last position of an axis of positions, as a view: [batch, tokens, features] ->
/// [batch, 1, features].
[[nodiscard]] const OperatorRow& last_position();

}  // namespace stowage::serving_rows
