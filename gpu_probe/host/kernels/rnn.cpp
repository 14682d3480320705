// Recurrent networks: lstm, gru and plain tanh and relu cells, in layers, in one direction or two.
//
// Every layer's argument and result are held as [seq, batch, width] while it runs. What backward
// needs beside x and y is in the reserve (estimator/step/rnn_reserve.hpp). Sums are in double, one
// result's terms in the order of the weights' columns.
#include <algorithm>
#include <cstring>

#include "gpu_probe/host/kernels/rnn_lane.hpp"
#include "gpu_probe/host/kernels/single_floats.hpp"
#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/mask_draw.hpp"

namespace stowage::host {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class Value>
void store(const Vector& from, Value* to) {
  std::transform(from.begin(), from.end(), to, [](double v) { return static_cast<Value>(v); });
}

struct Mask {
  body::MaskDraw draw;
  float scale;
};

/// Dropout between layers: of the argument of layer `layer`, by dropout_forward's draw, the
/// elements of all layers' results being numbered through.
template <class Value>
void drop(const RnnShape& r, std::int64_t layer, const Mask* mask, std::vector<Value>& values) {
  if (mask == nullptr || layer == 0) return;
  const std::int64_t first = (layer - 1) * r.seq * r.batch * r.width();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool keeps = mask->draw.keeps(first + static_cast<std::int64_t>(i));
    values[i] *= static_cast<Value>(keeps ? mask->scale : 0);
  }
}

std::optional<Mask> mask_of(const KernelCall& call) {
  const double p = real(call, "dropout", 0);
  if (p == 0) return std::nullopt;
  return Mask{mask_draw(p, integer(call, "seed", 0)), mask_scale(p)};
}

template <class Value>
std::vector<const Value*> addresses(std::span<const TensorArgument> tensors) {
  std::vector<const Value*> result;
  for (const TensorArgument& tensor : tensors) result.push_back(elements<Value>(tensor));
  return result;
}

template <class Value>
std::size_t reserve_bytes(const RnnShape& r) {
  return at(r.reserve_values()) * sizeof(Value);
}

template <class Value>
void require_reserve(const RnnShape& r, const TensorArgument& reserve) {
  require_shape("the reserve", reserve, {static_cast<std::int64_t>(reserve_bytes<Value>(r))});
}

/// One vector a sequence, of what a state's gradient is at the lane's end (null: 0).
template <class Value>
std::vector<Vector> state_gradients(const RnnShape& r, std::int64_t lane, const Value* gradient) {
  std::vector<Vector> result(at(r.batch), Vector(at(r.hidden), 0));
  if (gradient == nullptr) return result;
  for (std::int64_t b = 0; b < r.batch; ++b) {
    const Value* const begin = gradient + r.state_offset(lane, b);
    result[at(b)].assign(begin, begin + r.hidden);
  }
  return result;
}

template <class Value>
void forward(const KernelCall& call) {
  const std::size_t states = rnn_states(call);
  require(call.writes.size() == 1 + states || call.writes.size() == 2 + states,
          "writes {} tensors instead of {} or {}", call.writes.size(), 1 + states, 2 + states);
  const auto weights = call.reads.subspan(1 + states);
  const RnnShape r =
      rnn_shape(call, call.reads[0], call.writes[0], call.reads.subspan(1, states), weights);
  const bool training = call.writes.size() == 2 + states;
  if (training) require_reserve<Value>(r, call.writes.back());
  std::vector<Value*> last_states;
  for (std::size_t i = 1; i <= states; ++i) {
    require_same_shape("a last state", call.writes[i], call.reads[1]);
    last_states.push_back(elements<Value>(call.writes[i]));
  }
  const auto first_states = addresses<Value>(call.reads.subspan(1, states));
  const auto draw = training ? mask_of(call) : std::nullopt;
  std::vector<Value> reserve(at(r.reserve_values()));
  std::vector<Value> argument = sequence_first(r, elements<Value>(call.reads[0]), r.in), result;
  for (std::int64_t layer = 0; layer < r.layers; ++layer) {
    drop(r, layer, draw ? &*draw : nullptr, argument);
    result.assign(at(r.seq * r.batch * r.width()), 0);
    for (std::int64_t d = 0; d < r.directions; ++d) {
      RnnLane<Value>(r, layer * r.directions + d, weights)
          .forward({argument, first_states, result, reserve}, last_states);
    }
    if (layer + 1 < r.layers) {
      std::copy(result.begin(), result.end(), reserve.begin() + r.result_offset(layer));
    }
    argument = result;
  }
  store_sequence(r, result, r.width(), elements<Value>(call.writes[0]));
  if (training && !reserve.empty()) {
    std::memcpy(mutable_mask_bytes(call.writes.back()), reserve.data(), reserve_bytes<Value>(r));
  }
}

/// rnn_backward's arguments by name.
struct BackwardCall {
  RnnShape r;
  std::span<const TensorArgument> weights, first_states, last_gradients;
  TensorArgument x, y, reserve, dy;
  std::span<const TensorArgument> state_results, weight_results;
};

template <class Value>
BackwardCall backward_call(const KernelCall& call) {
  const std::size_t states = rnn_states(call);
  require(call.writes.size() > 1 + states, "writes {} tensors: no weights' gradients",
          call.writes.size());
  const std::size_t weights = call.writes.size() - 1 - states, y = 1 + states + weights;
  require(call.reads.size() >= y + 3 && call.reads.size() <= y + 3 + states,
          "reads {} tensors, of which it takes {} to {}", call.reads.size(), y + 3, y + 3 + states);
  BackwardCall b{.r = {},
                 .weights = call.reads.subspan(1 + states, weights),
                 .first_states = call.reads.subspan(1, states),
                 .last_gradients = call.reads.subspan(y + 3),
                 .x = call.reads[0],
                 .y = call.reads[y],
                 .reserve = call.reads[y + 1],
                 .dy = call.reads[y + 2],
                 .state_results = call.writes.subspan(1, states),
                 .weight_results = call.writes.subspan(1 + states)};
  b.r = rnn_shape(call, b.x, b.y, b.first_states, b.weights);
  require_reserve<Value>(b.r, b.reserve);
  require_same_shape("dy", b.dy, b.y);
  for (std::size_t i = 0; i < call.writes.size(); ++i) {
    require_same_shape(fmt::format("write {}", i), call.writes[i], call.reads[i]);
  }
  for (const auto& gradient : b.last_gradients) {
    require_same_shape("a last state's gradient", gradient, b.first_states[0]);
  }
  return b;
}

/// One layer in one direction; adds to dx, stores what becomes of its states and weights.
template <class Value>
void lane_backward(const BackwardCall& b, std::int64_t lane, const LaneTensors<Value>& tensors,
                   const std::vector<Value>& dy, Vector& dx) {
  const auto last = [&](std::size_t state) {
    return b.last_gradients.size() > state ? elements<Value>(b.last_gradients[state]) : nullptr;
  };
  auto dh = state_gradients(b.r, lane, last(0)), dc = state_gradients(b.r, lane, last(1));
  const LaneGradients sums = RnnLane<Value>(b.r, lane, b.weights).backward(tensors, dy, dh, dc, dx);
  for (std::size_t state = 0; state < b.state_results.size(); ++state) {
    Value* const result = elements<Value>(b.state_results[state]);
    for (std::int64_t sequence = 0; sequence < b.r.batch; ++sequence) {
      store((state == 0 ? dh : dc)[at(sequence)], result + b.r.state_offset(lane, sequence));
    }
  }
  const auto results = b.weight_results.subspan(b.r.first_weight(lane));
  store(sums.w_ih, elements<Value>(results[0]));
  store(sums.w_hh, elements<Value>(results[1]));
  if (b.r.tensors_per_layer == 2) return;
  store(sums.b_ih, elements<Value>(results[2]));
  store(sums.b_hh, elements<Value>(results[3]));
}

template <class Value>
void backward(const KernelCall& call) {
  const BackwardCall b = backward_call<Value>(call);
  const RnnShape& r = b.r;
  std::vector<Value> reserve(at(r.reserve_values()));
  if (!reserve.empty()) std::memcpy(reserve.data(), mask_bytes(b.reserve), reserve_bytes<Value>(r));
  const auto draw = mask_of(call);
  const auto first_states = addresses<Value>(b.first_states);
  std::vector<Value> result = sequence_first(r, elements<Value>(b.y), r.width());
  std::vector<Value> gradient = sequence_first(r, elements<Value>(b.dy), r.width());
  for (std::int64_t layer = r.layers; layer-- > 0;) {
    const std::vector<Value> below =
        layer == 0 ? sequence_first(r, elements<Value>(b.x), r.in)
                   : std::vector<Value>(reserve.begin() + r.result_offset(layer - 1),
                                        reserve.begin() + r.result_offset(layer));
    std::vector<Value> argument = below;
    drop(r, layer, draw ? &*draw : nullptr, argument);
    Vector d_argument(argument.size(), 0);
    for (std::int64_t d = 0; d < r.directions; ++d) {
      lane_backward<Value>(b, layer * r.directions + d, {argument, first_states, result, reserve},
                           gradient, d_argument);
    }
    gradient.resize(d_argument.size());
    store(d_argument, gradient.data());
    drop(r, layer, draw ? &*draw : nullptr, gradient);
    result = below;
  }
  store_sequence(r, gradient, r.in, elements<Value>(call.writes[0]));
}

/// What it keeps and what it computes with, by x's format.
bool is_in_double(const KernelCall& call) { return call.reads[0].type == DataType::float64; }

}  // namespace

void rnn_forward(const KernelCall& call) {
  if (is_in_double(call)) return forward<double>(call);
  run_in_single_floats(call, forward<float>);
}

void rnn_backward(const KernelCall& call) {
  if (is_in_double(call)) return backward<double>(call);
  run_in_single_floats(call, backward<float>);
}

}  // namespace stowage::host
