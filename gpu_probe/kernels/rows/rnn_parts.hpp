// The parts of a recurrent layer's work that forward and backward share: where things lie, scratch,
// copies, and the list of products and launches. Only for the sources of rnn_work.hpp.
#pragma once

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/mask_draw.hpp"
#include "gpu_probe/kernels/rows/products.hpp"
#include "gpu_probe/kernels/rows/rnn_shape.hpp"

namespace stowage::kernels {

using Work = std::vector<std::variant<Product, Launch>>;

struct RnnDropout {
  body::MaskDraw draw;
  float scale;
};

/// One lane's part of a tensor of states.
inline body::Floats lane_of(const TensorArgument& states, std::int64_t offset) {
  body::Floats floats = any_floats(states);
  floats.data = states.data + offset * element_size(states.type);
  return floats;
}

/// `T`: the type of the computation, float or double.
template <class T>
class RnnWork {
 protected:
  RnnWork(const RnnShape& r, const TensorArgument* scratch) : r_(r) {
    require(scratch != nullptr, "a GPU takes scratch for a recurrent layer, which the call lacks");
    room_ = reinterpret_cast<T*>(scratch->data);
    left_ = count(scratch->shape) / static_cast<std::int64_t>(sizeof(T));
  }

  T* take(std::int64_t values) {
    require(values <= left_, "the scratch is too small by {} values", values - left_);
    left_ -= values;
    return std::exchange(room_, room_ + values);
  }
  void launch(Launch launch) {
    if (launch.count > 0) work_.emplace_back(std::move(launch));
  }
  void multiply(const Product& product) {
    if (product.m > 0 && product.n > 0) work_.emplace_back(product);
  }
  void copy(const body::Floats& from, const body::Floats& to, std::int64_t values) {
    launch(each_index(body::RnnCopy{from, to, 1, values, 1, false}, values));
  }

  static Matrices matrix(const T* data, std::int64_t columns, bool transposed = false) {
    return {reinterpret_cast<std::byte*>(const_cast<T*>(data)), data_type_of<T>, columns,
            transposed};
  }
  static body::Floats floats_at(const T* data) {
    return any_floats({reinterpret_cast<std::byte*>(const_cast<T*>(data)), data_type_of<T>, {}});
  }

  /// The argument's elements in T: its own, or a copy.
  const T* values_of(const TensorArgument& argument) {
    if (argument.type == data_type_of<T>) return elements<T>(argument);
    T* const values = take(count(argument.shape));
    copy(any_floats(argument), floats_at(values), count(argument.shape));
    return values;
  }
  std::vector<const T*> values_of(std::span<const TensorArgument> arguments) {
    std::vector<const T*> values;
    for (const TensorArgument& argument : arguments) values.push_back(values_of(argument));
    return values;
  }
  /// Copies the argument to `to`, position by position: [seq, batch, width].
  void load_sequence(const TensorArgument& from, std::int64_t width, T* to) {
    launch(each_index(
        body::RnnCopy{any_floats(from), floats_at(to), r_.batch, r_.seq, width, r_.batch_first},
        r_.positions() * width));
  }
  void store_sequence(const T* from, std::int64_t width, const TensorArgument& to) {
    const std::int64_t outer = r_.batch_first ? r_.batch : r_.seq,
                       inner = r_.batch_first ? r_.seq : r_.batch;
    launch(each_index(
        body::RnnCopy{floats_at(from), any_floats(to), inner, outer, width, r_.batch_first},
        r_.positions() * width));
  }
  /// Dropout of the argument of layer `layer`. The elements of all layers' results are numbered
  /// consecutively.
  void drop(const RnnDropout& dropout, std::int64_t layer, const T* from, T* to) {
    const std::int64_t values = r_.positions() * r_.width();
    launch(each_index(body::RnnDrop<T>{from, to, dropout.draw, (layer - 1) * values, dropout.scale},
                      values));
  }

  struct Lane {
    std::int64_t layer, direction, number;
    const T *w_ih, *w_hh, *b_ih, *b_hh;
  };
  [[nodiscard]] Lane lane(std::int64_t layer, std::int64_t direction) const {
    const std::int64_t number = layer * r_.directions + direction;
    const std::size_t first = r_.first_weight(number);
    const bool has_bias = r_.tensors_per_layer == 4;
    return {layer,
            direction,
            number,
            weights_[first],
            weights_[first + 1],
            has_bias ? weights_[first + 2] : nullptr,
            has_bias ? weights_[first + 3] : nullptr};
  }
  /// The i-th position in the lane's order.
  [[nodiscard]] std::int64_t position(const Lane& lane, std::int64_t i) const {
    return lane.direction == 1 ? r_.seq - 1 - i : i;
  }
  /// The lane's half of a layer's result, or of its gradient, at one position.
  template <class Value>
  [[nodiscard]] body::RnnRows<Value> half(Value* result, const Lane& lane, std::int64_t t) const {
    return {result + t * r_.batch * r_.width() + lane.direction * r_.hidden, r_.width()};
  }
  template <class Value>
  [[nodiscard]] body::RnnRows<Value> kept(Value* reserve, const Lane& lane, std::int64_t t) const {
    return {reserve + r_.kept_offset(lane.number, t, 0), r_.kept * r_.hidden};
  }
  [[nodiscard]] body::RnnRows<const T> first_state(std::size_t state, const Lane& lane) const {
    return {first_states_[state] + r_.state_offset(lane.number, 0), r_.hidden};
  }
  [[nodiscard]] body::RnnRows<const T> h_before(const T* result, const Lane& lane,
                                                std::int64_t i) const {
    return i == 0 ? first_state(0, lane) : half(result, lane, position(lane, i - 1));
  }
  [[nodiscard]] body::RnnRows<const T> c_before(const T* reserve, const Lane& lane,
                                                std::int64_t i) const {
    if (!has_cell_state()) return {nullptr, 0};
    if (i == 0) return first_state(1, lane);
    const body::RnnRows<const T> all = kept(reserve, lane, position(lane, i - 1));
    return {all.data + 4 * r_.hidden, all.row};
  }
  [[nodiscard]] bool has_cell_state() const { return r_.cell == RnnCell::lstm; }

  const RnnShape& r_;
  std::vector<const T*> weights_, first_states_;
  Work work_;

 private:
  T* room_ = nullptr;
  std::int64_t left_ = 0;
};

[[nodiscard]] Work rnn_backward_work(const RnnBackwardCall& call,
                                     std::optional<RnnDropout> dropout);

}  // namespace stowage::kernels
