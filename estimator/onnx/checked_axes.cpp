#include "estimator/onnx/checked_axes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stowage {

namespace {

using SliceInputs = std::vector<const OnnxValue*>;

// An attribute, or an input with as many numbers as there can be axes at most.
std::optional<std::vector<Affine>> numbers_per_axis(const OnnxNode& node, const SliceInputs& inputs,
                                                    std::string_view attribute, std::size_t input) {
  if (const OnnxAttribute* found = node.find(attribute)) {
    if (found->integers.size() > most_onnx_axes) return std::nullopt;
    return std::vector<Affine>(found->integers.begin(), found->integers.end());
  }
  if (input >= inputs.size() || inputs[input]->is_absent()) return std::vector<Affine>();
  const OnnxValue& value = *inputs[input];
  if (value.integers.size() > most_onnx_axes) return std::nullopt;
  const bool is_empty = value.is_constant() && small_count(value.type.shape) == 0;
  if (value.integers.empty() && !is_empty) return std::nullopt;
  return value.integers;
}

bool all_constant(const std::vector<Affine>& numbers) {
  return std::ranges::all_of(numbers, &Affine::is_constant);
}

}  // namespace

std::optional<std::size_t> axis_in(std::int64_t axis, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

std::optional<std::vector<std::int64_t>> axes_of(const OnnxNode& node,
                                                 const std::vector<const OnnxValue*>& inputs,
                                                 std::size_t input) {
  const auto axes = numbers_per_axis(node, inputs, "axes", input);
  if (!axes || !all_constant(*axes)) return std::nullopt;
  std::vector<std::int64_t> all;
  for (const Affine& axis : *axes) all.push_back(axis.constant);
  return all;
}

std::optional<std::vector<bool>> marked_axes(const std::vector<std::int64_t>& axes,
                                             std::size_t rank) {
  std::vector<bool> marked(rank);
  for (const std::int64_t axis : axes) {
    const auto place = axis_in(axis, rank);
    if (!place || marked[*place]) return std::nullopt;
    marked[*place] = true;
  }
  return marked;
}

std::optional<std::vector<std::size_t>> permutation_of(const OnnxNode& node, std::size_t rank) {
  std::vector<std::size_t> order;
  const OnnxAttribute* given = node.find("perm");
  if (given == nullptr || given->integers.empty()) {
    for (std::size_t i = rank; i-- > 0;) order.push_back(i);
    return order;
  }
  if (given->integers.size() != rank || !marked_axes(given->integers, rank)) return std::nullopt;
  for (const std::int64_t axis : given->integers) order.push_back(*axis_in(axis, rank));
  return order;
}

tl::expected<std::vector<OnnxSlice>, std::string> slices_of(
    const OnnxNode& node, const std::vector<const OnnxValue*>& inputs) {
  constexpr std::size_t starts_input = 1, ends_input = 2, axes_input = 3, steps_input = 4;
  const auto starts = numbers_per_axis(node, inputs, "starts", starts_input);
  const auto ends = numbers_per_axis(node, inputs, "ends", ends_input);
  auto axes = numbers_per_axis(node, inputs, "axes", axes_input);
  auto steps = numbers_per_axis(node, inputs, "steps", steps_input);
  if (inputs.empty() || !starts || !ends || !axes || !steps || !all_constant(*axes) ||
      !all_constant(*steps)) {
    return tl::unexpected(std::string("its bounds are not constants"));
  }
  const std::size_t count = starts->size();
  if (axes->empty()) {
    for (std::size_t i = 0; i < count; ++i) axes->emplace_back(static_cast<std::int64_t>(i));
  }
  if (steps->empty()) steps->assign(count, 1);
  if (ends->size() != count || axes->size() != count || steps->size() != count) {
    return tl::unexpected(
        fmt::format("it has {} starts, {} ends and {} steps", count, ends->size(), steps->size()));
  }
  const std::size_t rank = inputs[0]->rank();
  std::vector<bool> sliced(rank);
  std::vector<OnnxSlice> slices;
  for (std::size_t i = 0; i < count; ++i) {
    const auto axis = axis_in((*axes)[i].constant, rank);
    if (!axis || sliced[*axis]) {
      return tl::unexpected(fmt::format("its axis {} {}", (*axes)[i].constant,
                                        axis ? "stands twice" : "is out of range"));
    }
    sliced[*axis] = true;
    if ((*steps)[i] == Affine(0)) return tl::unexpected(std::string("its step is 0"));
    slices.push_back({*axis, (*starts)[i], (*ends)[i], (*steps)[i].constant});
  }
  return slices;
}

std::optional<std::vector<std::int64_t>> split_sizes(const OnnxNode& node,
                                                     const std::vector<const OnnxValue*>& inputs,
                                                     std::int64_t extent) {
  const std::size_t parts = node.outputs.size();
  if (parts == 0 || extent < 0) return std::nullopt;
  std::vector<std::int64_t> sizes = node.integers("split");
  if (sizes.empty() && inputs.size() > 1 && inputs[1]->integers.size() == parts) {
    sizes = inputs[1]->numbers().value_or(sizes);
  }
  const auto count = static_cast<std::int64_t>(parts);
  if (sizes.empty() && extent % count == 0) sizes.assign(parts, extent / count);
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > extent - sum) return std::nullopt;
    sum += size;
  }
  if (sizes.size() != parts || sum != extent) return std::nullopt;
  return sizes;
}

}  // namespace stowage
