// RnnShape and RnnForwardCall: a recurrent call's sizes, its arguments by name, and where things
// lie in its tensors and its reserve (estimator/step/rnn_reserve.hpp).
#pragma once

#include <span>

#include "gpu_probe/kernels/bodies/rnn.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

using body::RnnCell;

struct RnnShape {
  RnnCell cell = RnnCell::lstm;
  std::int64_t layers = 1, directions = 1;
  std::int64_t seq = 0, batch = 0, in = 0, hidden = 0;
  std::int64_t kept = 0;  ///< number of vectors that a cell keeps at each position
  bool batch_first = false;
  std::size_t tensors_per_layer = 2;  ///< weights of one direction; 4 with biases

  [[nodiscard]] std::int64_t gates() const {
    return cell == RnnCell::lstm ? 4 : cell == RnnCell::gru ? 3 : 1;
  }
  [[nodiscard]] std::int64_t gate_rows() const { return gates() * hidden; }
  [[nodiscard]] std::int64_t positions() const { return seq * batch; }
  [[nodiscard]] std::int64_t width() const { return directions * hidden; }  ///< of a layer's result
  /// The width of a layer's argument.
  [[nodiscard]] std::int64_t in_of(std::int64_t layer) const { return layer == 0 ? in : width(); }
  /// The index among the weights of w_ih of a layer and direction.
  [[nodiscard]] std::size_t first_weight(std::int64_t lane) const {
    return static_cast<std::size_t>(lane) * tensors_per_layer;
  }

  // Offsets in values. `lane` is layer * directions + direction.
  [[nodiscard]] std::int64_t state_offset(std::int64_t lane, std::int64_t sequence) const {
    return (lane * batch + sequence) * hidden;
  }
  [[nodiscard]] std::int64_t kept_offset(std::int64_t lane, std::int64_t t,
                                         std::int64_t sequence) const {
    return ((lane * seq + t) * batch + sequence) * kept * hidden;
  }
  /// The offset of a layer's result in the reserve; all layers except the last have one there.
  [[nodiscard]] std::int64_t result_offset(std::int64_t layer) const {
    return kept_offset(layers * directions, 0, 0) + layer * positions() * width();
  }
  [[nodiscard]] std::int64_t reserve_values() const { return result_offset(layers - 1); }
};

/// The type in which a recurrent layer computes and keeps values: float64 where x is, else float32.
[[nodiscard]] DataType rnn_format(const TensorArgument& x);

/// Null pointers: the call has no such argument.
struct RnnForwardCall {
  RnnShape r;
  TensorArgument x, y;
  std::span<const TensorArgument> first_states, weights, last_states;
  const TensorArgument *reserve = nullptr, *scratch = nullptr;
};
struct RnnBackwardCall {
  RnnShape r;
  TensorArgument x, y, reserve, dy, dx;
  std::span<const TensorArgument> first_states, weights, last_gradients;
  std::span<const TensorArgument> state_gradients, weight_gradients;
  const TensorArgument* scratch = nullptr;
};

/// Throws KernelError where shapes, numbers of tensors or attributes do not fit.
[[nodiscard]] RnnForwardCall rnn_forward_call(const KernelCall& call);
[[nodiscard]] RnnBackwardCall rnn_backward_call(const KernelCall& call);

}  // namespace stowage::kernels
