#include "gpu_probe/host/kernels/rnn_shape.hpp"

#include <algorithm>

#include "estimator/step/rnn_reserve.hpp"

namespace stowage::host {
namespace {

Cell cell_of(const KernelCall& call) {
  const std::string name = text(call, "cell", "");
  const auto cell = parse_cell(name);
  require(cell.has_value(), "attribute 'cell' is '{}'", name);
  return *cell;
}

void require_weights(const RnnShape& r, std::span<const TensorArgument> weights) {
  for (std::int64_t lane = 0; lane < r.layers * r.directions; ++lane) {
    const auto of_lane = weights.subspan(r.first_weight(lane), r.tensors_per_layer);
    const std::int64_t rows = r.gate_rows(), in = r.in_of(lane / r.directions);
    require_shape(fmt::format("w_ih {}", lane), of_lane[0], {rows, in});
    require_shape(fmt::format("w_hh {}", lane), of_lane[1], {rows, r.hidden});
    for (std::size_t i = 2; i < of_lane.size(); ++i) {
      require_shape(fmt::format("bias {}", lane), of_lane[i], {rows});
    }
  }
}

}  // namespace

std::size_t rnn_states(const KernelCall& call) { return cell_of(call) == Cell::lstm ? 2 : 1; }

RnnShape rnn_shape(const KernelCall& call, const TensorArgument& x, const TensorArgument& y,
                   std::span<const TensorArgument> states,
                   std::span<const TensorArgument> weights) {
  RnnShape r{.cell = cell_of(call),
             .layers = integer(call, "layers", 1),
             .directions = boolean(call, "bidirectional", false) ? 2 : 1,
             .kept = rnn_kept_vectors(text(call, "cell", "")),
             .batch_first = boolean(call, "batch_first", false),
             .states = states.size()};
  require(
      x.shape.size() == 3 && y.shape.size() == 3 && r.layers >= 1 && y.shape[2] % r.directions == 0,
      "x {} and y {} are no sequences of {} layers", shape_text(x.shape), shape_text(y.shape),
      r.layers);
  require(integer(call, "projection", 0) == 0, "the host kernels do not project an lstm's result");
  r.seq = x.shape[r.batch_first ? 1 : 0];
  r.batch = x.shape[r.batch_first ? 0 : 1];
  r.in = x.shape[2];
  r.hidden = y.shape[2] / r.directions;
  require_shape("y", y, {x.shape[0], x.shape[1], r.width()});
  for (const TensorArgument& state : states) {
    require_shape("a state", state, {r.layers * r.directions, r.batch, r.hidden});
  }
  const auto lanes = static_cast<std::size_t>(r.layers * r.directions);
  require(weights.size() == 2 * lanes || weights.size() == 4 * lanes,
          "{} weights are neither 2 nor 4 for each of {} layers and directions", weights.size(),
          lanes);
  r.tensors_per_layer = weights.size() / lanes;
  require_weights(r, weights);
  return r;
}

template <class Value>
std::vector<Value> sequence_first(const RnnShape& r, const Value* values, std::int64_t width) {
  std::vector<Value> result(values, values + r.seq * r.batch * width);
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

#define STOWAGE_OF(Value)                                                                  \
  template std::vector<Value> sequence_first(const RnnShape&, const Value*, std::int64_t); \
  template void store_sequence(const RnnShape&, const std::vector<Value>&, std::int64_t, Value*);
STOWAGE_OF(float)
STOWAGE_OF(double)
#undef STOWAGE_OF

}  // namespace stowage::host
