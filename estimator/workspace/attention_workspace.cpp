#include "estimator/workspace/attention_workspace.hpp"

#include <cassert>
#include <string>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

using Operand = AttentionQuery::Operand;

constexpr std::int64_t float_size = 4;

Operand operand(const TensorView& view, std::int64_t batch) {
  return {at_batch(view.shape, batch), at_batch(view.strides, batch)};
}

// Expands a mask as PyTorch does: a repeated axis has stride 0.
Operand expanded(const TensorView& bias, const AttentionQuery& query, std::int64_t batch) {
  Operand result;
  result.shape = {query.query.shape[0], query.query.shape[1], query.query.shape[2],
                  query.key.shape[2]};
  result.strides.assign(4, 0);
  const Operand given = operand(bias, batch);
  const std::size_t lead = 4 - given.shape.size();
  for (std::size_t i = 0; i < given.shape.size(); ++i) {
    if (given.shape[i] == result.shape[lead + i]) result.strides[lead + i] = given.strides[i];
  }
  return result;
}

// PyTorch copies the output's gradient into the output's layout where its rows are not dense, and
// hands it over as it is otherwise (with cuDNN 9.5.1 and later).
Operand dense_gradient(const TensorView& gradient, const TensorView& output, std::int64_t batch) {
  Operand result = operand(gradient, batch);
  if (result.strides.back() != 1) {
    result.strides = at_batch(dense_strides(gradient.shape, output.strides), batch);
  }
  return result;
}

constexpr Bytes slack(128);

bool is_hopper(double capability) { return capability > 8.95 && capability < 9.95; }
bool is_blackwell(double capability) { return capability > 9.95 && capability < 11.95; }

/// One float32 for each row of the scores.
Bytes row_bytes(const AttentionQuery& query) {
  Bytes rows(float_size);
  for (std::size_t i = 0; i < 3; ++i) rows = rows * query.query.shape[i];
  return rows;
}

/// If key heads are shared: their gradients for each query head.
Bytes full_head_bytes(const AttentionQuery& query) {
  const std::vector<std::int64_t>& q = query.query.shape;
  if (q[1] == query.key.shape[1]) return {};
  return Bytes(element_size(query.type)) * q[0] * q[1] * query.key.shape[2] *
         (q[3] + query.value.shape[3]);
}

std::int64_t rounded_up(std::int64_t length, std::int64_t multiple) {
  return (length + multiple - 1) / multiple * multiple;
}

constexpr std::int64_t tile = 128;  // positions that a kernel takes at once

/// The dropout mask, one bit for each score in whole tiles.
Bytes mask_bits(const AttentionQuery& query) {
  const std::vector<std::int64_t>& q = query.query.shape;
  const Bytes scores =
      Bytes(q[0]) * q[1] * rounded_up(q[2], tile) * rounded_up(query.key.shape[2], tile);
  return Bytes(scores.count() / 8);
}

/// cuDNN's own sum of the query's gradient in float32, of positions in eights.
Bytes gradient_sum(const AttentionQuery& query) {
  const std::vector<std::int64_t>& q = query.query.shape;
  return Bytes(float_size) * q[0] * q[1] * rounded_up(q[2], 8) * q[3] + slack;
}

}  // namespace

bool is_cudnn_attention(const KernelNode& node) {
  if (node.kernel != Kernel::attention_forward && node.kernel != Kernel::attention_backward) {
    return false;
  }
  return node.attributes.text("implementation") == "cudnn";
}

AttentionQuery attention_query(const StepGraph& graph, const KernelNode& node, std::int64_t batch) {
  assert(is_cudnn_attention(node));
  const bool forward = node.kernel == Kernel::attention_forward;
  const std::size_t first = forward ? 0 : 1;  // the gradient comes before the query
  const TensorView& output = forward ? node.writes[0] : node.reads[4];
  AttentionQuery query;
  query.direction =
      forward ? AttentionQuery::Direction::forward : AttentionQuery::Direction::backward;
  query.type = output.type;
  query.query = operand(node.reads[first], batch);
  query.key = operand(node.reads[first + 1], batch);
  query.value = operand(node.reads[first + 2], batch);
  query.output = operand(output, batch);
  if (!forward) query.gradient = dense_gradient(node.reads[0], output, batch);
  const std::size_t bias = forward ? 3 : 6;
  if (node.reads.size() > bias) query.bias = expanded(node.reads[bias], query, batch);
  // A given mask already includes the causal one.
  query.causal = node.attributes.boolean("causal") && query.bias.shape.empty();
  query.statistics = !forward || node.writes.size() > 1;
  if (graph.settings.mode == Mode::train) query.dropout = node.attributes.real("dropout");
  return query;
}

Bytes frontend_workspace(const AttentionQuery& query) {
  if (query.direction == AttentionQuery::Direction::forward) return {};
  const Bytes rows = row_bytes(query);
  return rows * query.query.shape[3] + rows;
}

bool frontend_names_engine(const AttentionQuery& query, double compute_capability) {
  constexpr std::int64_t wide = 256;
  return query.direction == AttentionQuery::Direction::backward &&
         is_blackwell(compute_capability) && query.query.shape[3] == wide &&
         query.value.shape[3] == wide;
}

bool cudnn_has_attention(double compute_capability) { return compute_capability > 7.95; }

Bytes rule_attention_workspace(const AttentionQuery& query, double compute_capability) {
  if (!cudnn_has_attention(compute_capability)) return {};
  const bool backward = query.direction == AttentionQuery::Direction::backward;
  Bytes bytes = frontend_workspace(query);
  if (frontend_names_engine(query, compute_capability)) {
    const Bytes full = full_head_bytes(query);
    return row_bytes(query) + (full == Bytes() ? full : 3 * full + slack);
  }
  if (backward) bytes += full_head_bytes(query);
  if (is_hopper(compute_capability)) return bytes + 2 * slack;
  if (!is_blackwell(compute_capability)) {
    return backward ? bytes + gradient_sum(query) : bytes;
  }
  const bool is_short = query.query.shape[2] > 1 && query.query.shape[2] <= tile;
  if (backward && is_short && query.dropout == 0) return bytes + gradient_sum(query);
  const Bytes mask = query.dropout > 0 ? mask_bits(query) : Bytes();
  const bool keeps_more = mask > Bytes() || (backward && full_head_bytes(query) > Bytes());
  return bytes + mask + (keeps_more ? slack : Bytes());
}

}  // namespace stowage
