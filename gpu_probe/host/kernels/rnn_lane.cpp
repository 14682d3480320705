#include "gpu_probe/host/kernels/rnn_lane.hpp"

#include <algorithm>

#include "gpu_probe/kernels/rows/formats.hpp"

namespace stowage::host {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// sum += a b^T.
template <class Value>
void add_outer_product(const Vector& a, const Value* b, std::size_t columns, Vector& sum) {
  for (std::size_t r = 0; r < a.size(); ++r) {
    for (std::size_t c = 0; c < columns; ++c) sum[r * columns + c] += a[r] * b[c];
  }
}

void add(const Vector& a, Vector& sum) {
  for (std::size_t i = 0; i < a.size(); ++i) sum[i] += a[i];
}

}  // namespace

template <class Value>
RnnLane<Value>::Weights::Weights(const Value* w, std::int64_t rows, std::int64_t columns)
    : w_(w), rows_(at(rows)), columns_(at(columns)), by_columns_(rows_ * columns_) {
  for (std::size_t r = 0; r < rows_; ++r) {
    for (std::size_t c = 0; c < columns_; ++c) by_columns_[c * rows_ + r] = w[r * columns_ + c];
  }
}

template <class Value>
void RnnLane<Value>::Weights::product(const Value* v, const Value* bias, Vector& result) const {
  if (bias == nullptr) {
    result.assign(rows_, 0);
  } else {
    result.assign(bias, bias + rows_);
  }
  for (std::size_t c = 0; c < columns_; ++c) {
    const double factor = v[c];
    const Value* const column = by_columns_.data() + c * rows_;
    for (std::size_t r = 0; r < rows_; ++r) result[r] += factor * column[r];
  }
}

template <class Value>
void RnnLane<Value>::Weights::add_transposed_product(const Vector& v, Vector& result) const {
  for (std::size_t r = 0; r < rows_; ++r) {
    for (std::size_t c = 0; c < columns_; ++c) result[c] += v[r] * w_[r * columns_ + c];
  }
}

template <class Value>
RnnLane<Value>::RnnLane(const RnnShape& r, std::int64_t lane,
                        std::span<const TensorArgument> weights)
    : r_(r),
      lane_(lane),
      in_(r.in_of(lane / r.directions)),
      reversed_(lane % r.directions == 1),
      w_ih_(elements<Value>(weights[r.first_weight(lane)]), r.gate_rows(), in_),
      w_hh_(elements<Value>(weights[r.first_weight(lane) + 1]), r.gate_rows(), r.hidden),
      b_ih_(r.tensors_per_layer == 4 ? elements<Value>(weights[r.first_weight(lane) + 2])
                                     : nullptr),
      b_hh_(r.tensors_per_layer == 4 ? elements<Value>(weights[r.first_weight(lane) + 3])
                                     : nullptr) {}

template <class Value>
CellStep<Value> RnnLane<Value>::step_at(std::int64_t i, std::int64_t sequence,
                                        const LaneTensors<Value>& tensors) const {
  const auto kept = [&](std::int64_t t) {
    return tensors.reserve.data() + r_.kept_offset(lane_, t, sequence);
  };
  const auto result = [&](std::int64_t t) {
    return tensors.y.data() + row(t, sequence, r_.width()) + column();
  };
  const bool lstm = r_.cell == RnnCell::lstm;
  const std::int64_t first = r_.state_offset(lane_, sequence), t = position(i);
  CellStep<Value> step{.h_before = tensors.first_states[0] + first,
                       .c_before = lstm ? tensors.first_states[1] + first : nullptr,
                       .h = result(t),
                       .kept = kept(t)};
  if (i == 0) return step;
  step.h_before = result(position(i - 1));
  if (lstm) step.c_before = kept(position(i - 1)) + 4 * r_.hidden;
  return step;
}

template <class Value>
void RnnLane<Value>::forward(const LaneTensors<Value>& tensors,
                             const std::vector<Value*>& last_states) const {
  Vector input, recurrent;
  for (std::int64_t i = 0; i < r_.seq; ++i) {
    for (std::int64_t b = 0; b < r_.batch; ++b) {
      const CellStep<Value> step = step_at(i, b, tensors);
      w_ih_.product(tensors.x.data() + row(position(i), b, in_), b_ih_, input);
      w_hh_.product(step.h_before, b_hh_, recurrent);
      cell_forward(r_.cell, input, recurrent, step);
      if (i + 1 < r_.seq) continue;
      const std::int64_t offset = r_.state_offset(lane_, b);
      std::copy_n(step.h, r_.hidden, last_states[0] + offset);
      if (r_.cell != RnnCell::lstm) continue;
      std::copy_n(step.kept + 4 * r_.hidden, r_.hidden, last_states[1] + offset);
    }
  }
}

template <class Value>
LaneGradients RnnLane<Value>::backward(const LaneTensors<Value>& tensors,
                                       const std::vector<Value>& dy, std::vector<Vector>& dh,
                                       std::vector<Vector>& dc, Vector& dx) const {
  const std::size_t rows = at(r_.gate_rows());
  LaneGradients sums{Vector(rows * at(in_)), Vector(rows * at(r_.hidden)), Vector(rows),
                     Vector(rows)};
  Vector d_input(rows), d_recurrent(rows), d_argument(at(in_));
  for (std::int64_t i = r_.seq; i-- > 0;) {
    for (std::size_t b = 0; b < dh.size(); ++b) {
      const auto sequence = static_cast<std::int64_t>(b);
      const CellStep<Value> step = step_at(i, sequence, tensors);
      const Value* const arriving = dy.data() + row(position(i), sequence, r_.width()) + column();
      for (std::size_t j = 0; j < dh[b].size(); ++j) dh[b][j] += arriving[j];
      cell_backward(r_.cell, step, dh[b], dc[b], d_input, d_recurrent);
      const std::int64_t argument = row(position(i), sequence, in_);
      add_outer_product(d_input, tensors.x.data() + argument, at(in_), sums.w_ih);
      add_outer_product(d_recurrent, step.h_before, at(r_.hidden), sums.w_hh);
      add(d_input, sums.b_ih);
      add(d_recurrent, sums.b_hh);
      w_hh_.add_transposed_product(d_recurrent, dh[b]);
      std::fill(d_argument.begin(), d_argument.end(), 0);
      w_ih_.add_transposed_product(d_input, d_argument);
      for (std::size_t j = 0; j < d_argument.size(); ++j) dx[at(argument) + j] += d_argument[j];
    }
  }
  return sums;
}

template class RnnLane<float>;
template class RnnLane<double>;

}  // namespace stowage::host
