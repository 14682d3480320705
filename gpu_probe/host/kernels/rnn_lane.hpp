// RnnLane: one layer of a recurrent network in one direction, forward or backward, over a whole
// batch.
#pragma once

#include "gpu_probe/host/kernels/rnn_cell.hpp"

namespace stowage::host {

/// A layer's argument and result are [seq, batch, width]; this direction has its half of the
/// result.
template <class Value>
struct LaneTensors {
  const std::vector<Value>& x;
  const std::vector<const Value*>& first_states;  ///< h0, [c0]: of all lanes
  std::vector<Value>& y;
  std::vector<Value>& reserve;
};

struct LaneGradients {
  Vector w_ih, w_hh, b_ih, b_hh;
};

template <class Value>
class RnnLane {
 public:
  /// `lane` is layer * directions + direction. `weights`: of all lanes.
  RnnLane(const RnnShape& r, std::int64_t lane, std::span<const TensorArgument> weights);

  /// Writes y, the reserve and the last states (hn, [cn]: of all lanes).
  void forward(const LaneTensors<Value>& tensors, const std::vector<Value*>& last_states) const;

  /// Adds to dx [seq, batch, width]. dh and dc have one vector for each sequence: before the call
  /// the gradients of the last states, afterwards those of the first states.
  [[nodiscard]] LaneGradients backward(const LaneTensors<Value>& tensors,
                                       const std::vector<Value>& dy, std::vector<Vector>& dh,
                                       std::vector<Vector>& dc, Vector& dx) const;

 private:
  /// Weights [rows, columns], stored by columns as well, so that the inner loop of a product goes
  /// over its results.
  class Weights {
   public:
    Weights(const Value* w, std::int64_t rows, std::int64_t columns);
    /// result = w v + bias (null: 0).
    void product(const Value* v, const Value* bias, Vector& result) const;
    /// result += w^T v.
    void add_transposed_product(const Vector& v, Vector& result) const;

   private:
    const Value* w_;
    std::size_t rows_, columns_;
    std::vector<Value> by_columns_;
  };

  /// The i-th position in this direction's order.
  [[nodiscard]] std::int64_t position(std::int64_t i) const {
    return reversed_ ? r_.seq - 1 - i : i;
  }
  /// The column of a result's row at which this direction's values begin.
  [[nodiscard]] std::int64_t column() const { return lane_ % r_.directions * r_.hidden; }
  /// The offset of a row in a [seq, batch, width] tensor.
  [[nodiscard]] std::int64_t row(std::int64_t t, std::int64_t sequence, std::int64_t width) const {
    return (t * r_.batch + sequence) * width;
  }
  [[nodiscard]] CellStep<Value> step_at(std::int64_t i, std::int64_t sequence,
                                        const LaneTensors<Value>& tensors) const;

  const RnnShape& r_;
  std::int64_t lane_, in_;
  bool reversed_;
  Weights w_ih_, w_hh_;
  const Value *b_ih_, *b_hh_;  // null: none
};

}  // namespace stowage::host
