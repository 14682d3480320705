// A recurrent call's sizes, and where things lie in its tensors and its reserve.
#pragma once

#include "gpu_probe/host/kernels/kernels.hpp"
#include "gpu_probe/host/kernels/rnn_cell.hpp"

namespace stowage::host {

struct RnnShape {
  Cell cell = Cell::lstm;
  std::int64_t layers = 1, directions = 1;
  std::int64_t seq = 0, batch = 0, in = 0, hidden = 0;
  std::int64_t kept = 0;  ///< vectors that a cell keeps at a position
  bool batch_first = false;
  std::size_t states = 1;             ///< h alone, or h and c
  std::size_t tensors_per_layer = 2;  ///< of weights, of one direction: 4 with biases

  [[nodiscard]] std::int64_t gate_rows() const { return gates(cell) * hidden; }
  [[nodiscard]] std::int64_t width() const { return directions * hidden; }  ///< of a layer's result
  /// Of a layer's argument.
  [[nodiscard]] std::int64_t in_of(std::int64_t layer) const { return layer == 0 ? in : width(); }
  [[nodiscard]] std::size_t weight_count() const {
    return static_cast<std::size_t>(layers * directions) * tensors_per_layer;
  }
  /// Of w_ih of a layer and direction among the weights.
  [[nodiscard]] std::size_t first_weight(std::int64_t lane) const {
    return static_cast<std::size_t>(lane) * tensors_per_layer;
  }

  // In values. `lane` is layer * directions + direction.
  [[nodiscard]] std::int64_t state_offset(std::int64_t lane, std::int64_t sequence) const {
    return (lane * batch + sequence) * hidden;
  }
  [[nodiscard]] std::int64_t kept_offset(std::int64_t lane, std::int64_t t,
                                         std::int64_t sequence) const {
    return ((lane * seq + t) * batch + sequence) * kept * hidden;
  }
  /// Of a layer's result in the reserve; all but the last layer have one.
  [[nodiscard]] std::int64_t result_offset(std::int64_t layer) const {
    return kept_offset(layers * directions, 0, 0) + layer * seq * batch * width();
  }
  [[nodiscard]] std::int64_t reserve_values() const { return result_offset(layers - 1); }
};

/// Checks x, y, the states and the weights, which stand from `first_weight` among `tensors`.
[[nodiscard]] RnnShape rnn_shape(const KernelCall& call, const TensorArgument& x,
                                 const TensorArgument& y, std::span<const TensorArgument> states,
                                 std::span<const TensorArgument> weights);

/// How many state tensors the call's cell has: 2 for an lstm.
[[nodiscard]] std::size_t rnn_states(const KernelCall& call);

/// [seq, batch, width] from what may be [batch, seq, width], and back.
template <class Value>
[[nodiscard]] std::vector<Value> sequence_first(const RnnShape& r, const Value* values,
                                                std::int64_t width);
template <class Value>
void store_sequence(const RnnShape& r, const std::vector<Value>& from, std::int64_t width,
                    Value* to);

}  // namespace stowage::host
