// Recurrent layers: lstm, gru and plain tanh and relu cells, in several layers, in one direction or
// two.
//
// Every layer's argument and result are held as [seq, batch, width] while it runs. The reserve
// (estimator/step/rnn_reserve.hpp) keeps what backward needs besides x and y. Sums are double; the
// terms of a result are added in the order of the weights' columns.
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

/// Dropout between layers, of the argument of layer `layer`, with the draw of dropout_forward. The
/// elements of all layers' results are numbered consecutively.
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

/// Converts from [batch, seq, width], if that is the call's layout, to [seq, batch, width], and
/// back.
template <class Value>
std::vector<Value> sequence_first(const RnnShape& r, const Value* values, std::int64_t width) {
  std::vector<Value> result(values, values + r.positions() * width);
  if (!r.batch_first) return result;
  for (std::int64_t t = 0; t < r.seq; ++t) {
    for (std::int64_t b = 0; b < r.batch; ++b) {
      std::copy_n(values + (b * r.seq + t) * width, width,
                  result.begin() + (t * r.batch + b) * width);
    }
  }
  return result;
}

template <class Value>
void store_sequence(const RnnShape& r, const std::vector<Value>& from, std::int64_t width,
                    Value* to) {
  for (std::int64_t t = 0; t < r.seq; ++t) {
    for (std::int64_t b = 0; b < r.batch; ++b) {
      const std::int64_t row = r.batch_first ? b * r.seq + t : t * r.batch + b;
      std::copy_n(from.begin() + (t * r.batch + b) * width, width, to + row * width);
    }
  }
}

/// The gradient of a state at the end of the lane: one vector for each sequence (null: 0).
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
  const RnnForwardCall f = rnn_forward_call(call);
  const RnnShape& r = f.r;
  std::vector<Value*> last_states;
  for (const TensorArgument& state : f.last_states) last_states.push_back(elements<Value>(state));
  const auto first_states = addresses<Value>(f.first_states);
  const auto draw = f.reserve != nullptr ? mask_of(call) : std::nullopt;
  std::vector<Value> reserve(at(r.reserve_values()));
  std::vector<Value> argument = sequence_first(r, elements<Value>(f.x), r.in), result;
  for (std::int64_t layer = 0; layer < r.layers; ++layer) {
    drop(r, layer, draw ? &*draw : nullptr, argument);
    result.assign(at(r.positions() * r.width()), 0);
    for (std::int64_t d = 0; d < r.directions; ++d) {
      RnnLane<Value>(r, layer * r.directions + d, f.weights)
          .forward({argument, first_states, result, reserve}, last_states);
    }
    if (layer + 1 < r.layers) {
      std::copy(result.begin(), result.end(), reserve.begin() + r.result_offset(layer));
    }
    argument = result;
  }
  store_sequence(r, result, r.width(), elements<Value>(f.y));
  if (f.reserve != nullptr && !reserve.empty()) {
    std::memcpy(mutable_mask_bytes(*f.reserve), reserve.data(), reserve.size() * sizeof(Value));
  }
}

/// Runs one layer in one direction backward: adds to dx, and stores the gradients of its states and
/// weights.
template <class Value>
void lane_backward(const RnnBackwardCall& b, std::int64_t lane, const LaneTensors<Value>& tensors,
                   const std::vector<Value>& dy, Vector& dx) {
  const auto last = [&](std::size_t state) {
    return b.last_gradients.size() > state ? elements<Value>(b.last_gradients[state]) : nullptr;
  };
  auto dh = state_gradients(b.r, lane, last(0)), dc = state_gradients(b.r, lane, last(1));
  const LaneGradients sums = RnnLane<Value>(b.r, lane, b.weights).backward(tensors, dy, dh, dc, dx);
  for (std::size_t state = 0; state < b.state_gradients.size(); ++state) {
    Value* const result = elements<Value>(b.state_gradients[state]);
    for (std::int64_t sequence = 0; sequence < b.r.batch; ++sequence) {
      store((state == 0 ? dh : dc)[at(sequence)], result + b.r.state_offset(lane, sequence));
    }
  }
  const auto results = b.weight_gradients.subspan(b.r.first_weight(lane));
  store(sums.w_ih, elements<Value>(results[0]));
  store(sums.w_hh, elements<Value>(results[1]));
  if (b.r.tensors_per_layer == 2) return;
  store(sums.b_ih, elements<Value>(results[2]));
  store(sums.b_hh, elements<Value>(results[3]));
}

template <class Value>
void backward(const KernelCall& call) {
  const RnnBackwardCall b = rnn_backward_call(call);
  const RnnShape& r = b.r;
  std::vector<Value> reserve(at(r.reserve_values()));
  if (!reserve.empty()) {
    std::memcpy(reserve.data(), mask_bytes(b.reserve), reserve.size() * sizeof(Value));
  }
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
  store_sequence(r, gradient, r.in, elements<Value>(b.dx));
}

bool is_in_double(const KernelCall& call) { return rnn_format(call.reads[0]) == DataType::float64; }

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
