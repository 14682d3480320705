#include "gpu_probe/kernels/rows/rnn_shape.hpp"

#include "estimator/step/rnn_reserve.hpp"

namespace stowage::kernels {
namespace {

RnnCell cell_of(const KernelCall& call) {
  const std::string name = text(call, "cell", "");
  if (name == "lstm") return RnnCell::lstm;
  if (name == "gru") return RnnCell::gru;
  if (name == "tanh") return RnnCell::tanh;
  require(name == "relu", "attribute 'cell' is '{}'", name);
  return RnnCell::relu;
}

std::size_t states_of(const KernelCall& call) { return cell_of(call) == RnnCell::lstm ? 2 : 1; }

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

RnnShape shape_of(const KernelCall& call, const TensorArgument& x, const TensorArgument& y,
                  std::span<const TensorArgument> states, std::span<const TensorArgument> weights) {
  RnnShape r{.cell = cell_of(call),
             .layers = integer(call, "layers", 1),
             .directions = boolean(call, "bidirectional", false) ? 2 : 1,
             .kept = rnn_kept_vectors(text(call, "cell", "")),
             .batch_first = boolean(call, "batch_first", false)};
  require(
      x.shape.size() == 3 && y.shape.size() == 3 && r.layers >= 1 && y.shape[2] % r.directions == 0,
      "x {} and y {} are no sequences of {} layers", shape_text(x.shape), shape_text(y.shape),
      r.layers);
  require(integer(call, "projection", 0) == 0, "the kernels do not project an lstm's result");
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

void require_reserve(const RnnShape& r, const TensorArgument& x, const TensorArgument& reserve) {
  require_shape("the reserve", reserve, {r.reserve_values() * element_size(rnn_format(x))});
}

}  // namespace

DataType rnn_format(const TensorArgument& x) {
  return x.type == DataType::float64 ? DataType::float64 : DataType::float32;
}

RnnForwardCall rnn_forward_call(const KernelCall& call) {
  const std::size_t states = states_of(call);
  const std::size_t least = 1 + states;
  require(call.writes.size() >= least && call.writes.size() <= least + 2,
          "writes {} tensors instead of {} to {}", call.writes.size(), least, least + 2);
  RnnForwardCall f{.r = {},
                   .x = call.reads[0],
                   .y = call.writes[0],
                   .first_states = call.reads.subspan(1, states),
                   .weights = call.reads.subspan(1 + states),
                   .last_states = call.writes.subspan(1, states)};
  if (call.writes.size() > least) f.reserve = &call.writes[least];
  if (call.writes.size() > least + 1) f.scratch = &call.writes[least + 1];
  f.r = shape_of(call, f.x, f.y, f.first_states, f.weights);
  if (f.reserve != nullptr) require_reserve(f.r, f.x, *f.reserve);
  for (const TensorArgument& state : f.last_states) {
    require_same_shape("a last state", state, f.first_states[0]);
  }
  return f;
}

RnnBackwardCall rnn_backward_call(const KernelCall& call) {
  const std::size_t states = states_of(call);
  const bool has_scratch = !call.writes.empty() && call.writes.back().type == DataType::uint8;
  const std::size_t gradients = call.writes.size() - (has_scratch ? 1 : 0);
  require(gradients > 1 + states, "writes {} tensors: no weights' gradients", gradients);
  const std::size_t weights = gradients - 1 - states, y = 1 + states + weights;
  require(call.reads.size() >= y + 3 && call.reads.size() <= y + 3 + states,
          "reads {} tensors, of which it takes {} to {}", call.reads.size(), y + 3, y + 3 + states);
  RnnBackwardCall b{.r = {},
                    .x = call.reads[0],
                    .y = call.reads[y],
                    .reserve = call.reads[y + 1],
                    .dy = call.reads[y + 2],
                    .dx = call.writes[0],
                    .first_states = call.reads.subspan(1, states),
                    .weights = call.reads.subspan(1 + states, weights),
                    .last_gradients = call.reads.subspan(y + 3),
                    .state_gradients = call.writes.subspan(1, states),
                    .weight_gradients = call.writes.subspan(1 + states, weights)};
  if (has_scratch) b.scratch = &call.writes.back();
  b.r = shape_of(call, b.x, b.y, b.first_states, b.weights);
  require_reserve(b.r, b.x, b.reserve);
  require_same_shape("dy", b.dy, b.y);
  for (std::size_t i = 0; i < gradients; ++i) {
    require_same_shape(fmt::format("write {}", i), call.writes[i], call.reads[i]);
  }
  for (const auto& gradient : b.last_gradients) {
    require_same_shape("a last state's gradient", gradient, b.first_states[0]);
  }
  return b;
}

}  // namespace stowage::kernels
