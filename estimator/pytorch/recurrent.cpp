#include "estimator/pytorch/recurrent.hpp"

#include <vector>

namespace stowage {

Affine cudnn_reserve(const CudnnRecurrence& n, DataType type) {
  const std::int64_t vectors = n.cell == "lstm" ? 5 : n.cell == "gru" ? 6 : 1;
  const Affine results = Affine(n.layers) * Affine(vectors) + Affine(n.layers - 1);
  return n.positions *
         (Affine(element_size(type)) * Affine(n.hidden) * Affine(n.directions) * results);
}

Affine cudnn_recurrent_workspace(Affine weights) { return weights + Affine(weights.constant / 2); }

Affine sequence_copy(const TensorView& view, bool batch_first) {
  const std::vector<std::int64_t> swap{1, 0, 2};
  return is_contiguous(batch_first ? permuted(view, swap) : view) ? Affine(0) : byte_count(view);
}

}  // namespace stowage
