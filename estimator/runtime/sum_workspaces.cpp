#include "estimator/runtime/sum_workspaces.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "estimator/card/card_rules.hpp"

namespace stowage {

namespace {

constexpr std::string_view recorded_sum = "aten::sum.dim_IntList";

/// Whatever a step's file says under that name: a list of numbers, or one; empty: neither.
std::span<const std::int64_t> numbers(const KernelNode& node, std::string_view attribute) {
  for (const auto& [key, value] : node.attributes.entries()) {
    if (key != attribute) continue;
    if (const auto* one = std::get_if<std::int64_t>(&value)) return {one, 1};
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return *list;
  }
  return {};
}

/// By axis of what is read: whether it is among these, of which negative ones count from the end.
std::vector<bool> among(const KernelNode& node, std::span<const std::int64_t> axes) {
  const std::int64_t rank = std::ssize(node.reads.front().shape);
  std::vector<bool> marks(node.reads.front().shape.size());
  for (const std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank) continue;
    marks[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return marks;
}

/// A bias's gradient keeps one axis: a convolution's the second, unless the node says otherwise.
std::vector<bool> summed_to_channels(const KernelNode& node) {
  constexpr std::array<std::int64_t, 1> second{1};
  const std::span<const std::int64_t> axis = numbers(node, "axis");
  std::vector<bool> summed =
      among(node, axis.empty() ? std::span<const std::int64_t>(second) : axis);
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

/// aten::sum over no axes sums all of them.
std::vector<bool> summed_as_recorded(const KernelNode& node) {
  const std::span<const std::int64_t> axes = numbers(node, "dim");
  if (axes.empty()) return std::vector<bool>(node.reads.front().shape.size(), true);
  return among(node, axes);
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

Bytes workspace_of(const KernelNode& node, std::int64_t batch, const ThreadCapacity& room) {
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
  const ThreadCapacity room{card.sm_count, resident_threads(card)};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!step.engines[i].empty()) continue;
    const Bytes bytes = workspace_of(graph.nodes[i], step.batch, room);
    if (bytes > Bytes()) step.engines[i] = {{"pytorch sum", bytes}};
  }
  return step;
}

}  // namespace stowage
