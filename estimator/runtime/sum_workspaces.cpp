#include "estimator/runtime/sum_workspaces.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "estimator/card/card_rules.hpp"

namespace stowage {

namespace {

constexpr std::string_view recorded_sum = "aten::sum.dim_IntList";

/// Whatever a step's file says; null: it has none of that name.
const AttributeValue* find_attribute(const KernelNode& node, std::string_view name) {
  for (const auto& [key, value] : node.attributes.entries()) {
    if (key == name) return &value;
  }
  return nullptr;
}

/// A number stands for a list of one; negative ones count from the end.
std::vector<std::int64_t> axes_named(const KernelNode& node, std::string_view attribute,
                                     std::vector<std::int64_t> otherwise) {
  const AttributeValue* const value = find_attribute(node, attribute);
  if (value == nullptr) return otherwise;
  if (const auto* one = std::get_if<std::int64_t>(value)) return {*one};
  const auto* const several = std::get_if<std::vector<std::int64_t>>(value);
  return several != nullptr ? *several : otherwise;
}

/// By axis of what is read: whether it is among these.
std::vector<bool> marked(const TensorView& view, const std::vector<std::int64_t>& axes) {
  const std::int64_t rank = std::ssize(view.shape);
  std::vector<bool> marks(view.shape.size());
  for (const std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank) continue;
    marks[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return marks;
}

/// A bias's gradient keeps one axis: a convolution's the second, unless the node says otherwise.
std::vector<bool> summed_to_channels(const KernelNode& node) {
  std::vector<bool> summed = marked(node.reads.front(), axes_named(node, "axis", {1}));
  summed.flip();
  return summed;
}

/// Those that the result lacks, or has once.
std::vector<bool> summed_to_shape(const KernelNode& node) {
  const Shape &x = node.reads.front().shape, &y = node.writes.front().shape;
  std::vector<bool> summed(x.size(), true);
  for (std::size_t i = 1; i <= std::min(x.size(), y.size()); ++i) {
    summed[x.size() - i] = y[y.size() - i] == Affine(1);
  }
  return summed;
}

/// aten::sum without axes sums all of them.
std::vector<bool> summed_as_recorded(const KernelNode& node) {
  const std::vector<std::int64_t> axes = axes_named(node, "dim", {});
  if (axes.empty()) return std::vector<bool>(node.reads.front().shape.size(), true);
  return marked(node.reads.front(), axes);
}

/// By axis of what is read; empty: the node sums nothing.
std::vector<bool> summed_axes(const KernelNode& node) {
  if (node.reads.empty() || node.writes.empty()) return {};
  switch (node.kernel) {
    case Kernel::channel_sum:
      return summed_to_channels(node);
    case Kernel::sum_to_shape:
      return summed_to_shape(node);
    case Kernel::foreign:
      return *node.foreign_kernel == recorded_sum ? summed_as_recorded(node) : std::vector<bool>();
    default:
      return {};
  }
}

Bytes workspace_of(const KernelNode& node, std::int64_t batch, const ThreadRoom& room) {
  try {
    const std::optional<TensorSum> sum = tensor_sum(node, batch);
    return sum ? sum_scratch(*sum, room) : Bytes();
  } catch (const ArithmeticOverflow&) {
    return {};  // a step's file may say of a view what no storage holds
  }
}

}  // namespace

std::optional<TensorSum> tensor_sum(const KernelNode& node, std::int64_t batch) {
  const std::vector<bool> summed = summed_axes(node);
  if (summed.empty()) return std::nullopt;
  const TensorView& x = node.reads.front();
  if (!is_floating_point(x.type) || x.strides.size() != x.shape.size()) return std::nullopt;
  TensorSum sum{.type = x.type, .offset = x.offset.at(batch)};
  sum.axes.reserve(summed.size());
  for (std::size_t i = 0; i < summed.size(); ++i) {
    sum.axes.push_back({x.shape[i].at(batch), x.strides[i].at(batch), summed[i]});
  }
  return sum;
}

bool takes_sum_workspace(const StepGraph& graph, const KernelNode& node) {
  return graph.kernel_set().dispatches_by_card && !summed_axes(node).empty();
}

SizedStep with_sum_workspaces(SizedStep step, const Card& card) {
  const StepGraph& graph = *step.graph;
  if (!graph.kernel_set().dispatches_by_card) return step;
  const ThreadRoom room{card.sm_count, resident_threads(card)};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!step.engines[i].empty()) continue;
    const Bytes bytes = workspace_of(graph.nodes[i], step.batch, room);
    if (bytes > Bytes()) step.engines[i] = {{"pytorch sum", bytes}};
  }
  return step;
}

}  // namespace stowage
