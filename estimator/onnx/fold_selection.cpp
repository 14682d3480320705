// Constant folding of nodes that select elements by their positions.
//
// Each rule says which element of the input an element of the result is; `chosen` checks that there
// is one. The result's size is known even if the numbers are not (large tables, masks).
#include <algorithm>
#include <array>
#include <functional>

#include "estimator/onnx/checked_axes.hpp"
#include "estimator/onnx/onnx_value.hpp"

namespace stowage {

namespace {

using Inputs = std::vector<const OnnxValue*>;
using Places = std::vector<std::int64_t>;  // an element's coordinates

// The element's number in row-major order; nullopt: the coordinates are not within the shape.
std::optional<std::size_t> flat_place(const Places& place, const Shape& shape) {
  if (place.size() != shape.size()) return std::nullopt;
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (place[i] < 0 || place[i] >= shape[i].constant) return std::nullopt;
    flat = flat * shape[i].constant + place[i];
  }
  return static_cast<std::size_t>(flat);
}

// Counts `place` up within `shape`.
void advance(Places& place, const Shape& shape) {
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (++place[i] < shape[i].constant) return;
    place[i] = 0;
  }
}

// A tensor, and coordinates in it.
struct Source {
  const OnnxValue* from = nullptr;
  Places place;
};

// `find_source`: writes the source of the element at the given coordinates of the result; false:
// there is none.
OnnxValue chosen(TensorType type, FoldingBudget& budget,
                 const std::function<bool(const Places&, Source&)>& find_source) {
  OnnxValue result = constant_value(std::move(type));
  const auto count = small_count(result.type.shape);
  if (!count || !budget.take(*count)) return result;
  Places place(result.rank());
  Source source;
  for (std::size_t i = 0; i < *count; ++i) {
    if (!find_source(place, source)) return constant_value(result.type);
    const auto flat = flat_place(source.place, source.from->type.shape);
    if (!flat) return constant_value(result.type);
    const OnnxValue& from = *source.from;
    if (*flat < from.integers.size()) result.integers.push_back(from.integers[*flat]);
    if (*flat < from.reals.size()) result.reals.push_back(from.reals[*flat]);
    advance(place, result.type.shape);
  }
  return result;
}

std::optional<OnnxValue> fold_gather(const OnnxNode& node, const Inputs& inputs,
                                     FoldingBudget& budget) {
  const auto type = infer_type(node, inputs);
  if (!type) return std::nullopt;
  const OnnxValue& from = *inputs[0];
  const OnnxValue& indices = *inputs[1];
  const auto axis = axis_in(node.integer("axis", 0), from.rank());
  if (!axis || !is_known(from) || !budget.take(indices.integers.size())) {
    return constant_value(*type);
  }
  const auto numbers = indices.numbers();
  if (!numbers) return constant_value(*type);
  const auto extent = static_cast<std::size_t>(from.type.shape[*axis].constant);
  Places of_index(indices.rank());
  return chosen(*type, budget, [&](const Places& place, Source& source) {
    const auto first = place.begin() + static_cast<std::ptrdiff_t>(*axis);
    const auto last = first + static_cast<std::ptrdiff_t>(indices.rank());
    std::copy(first, last, of_index.begin());
    const auto which = flat_place(of_index, indices.type.shape);
    if (!which || *which >= numbers->size()) return false;
    const auto at = axis_in((*numbers)[*which], extent);
    if (!at) return false;
    source.from = &from;
    source.place.assign(place.begin(), first);
    source.place.push_back(static_cast<std::int64_t>(*at));
    source.place.insert(source.place.end(), last, place.end());
    return true;
  });
}

std::optional<OnnxValue> fold_transpose(const OnnxNode& node, const Inputs& inputs,
                                        FoldingBudget& budget) {
  const auto type = infer_type(node, inputs);
  const auto order = permutation_of(node, inputs[0]->rank());
  if (!type || !order) return std::nullopt;
  if (!is_known(*inputs[0])) return constant_value(*type);
  return chosen(*type, budget, [&](const Places& place, Source& source) {
    source.from = inputs[0];
    source.place.resize(order->size());
    for (std::size_t i = 0; i < order->size(); ++i) source.place[(*order)[i]] = place[i];
    return true;
  });
}

std::optional<OnnxValue> fold_concat(const OnnxNode& node, const Inputs& inputs,
                                     FoldingBudget& budget) {
  const auto type = infer_type(node, inputs);
  if (!type) return std::nullopt;
  const auto axis = axis_in(node.integer("axis", 0), type->shape.size());
  const bool is_whole =
      axis && small_count(type->shape) &&
      std::ranges::all_of(inputs, [](const OnnxValue* one) { return is_known(*one); });
  if (!is_whole) return constant_value(*type);
  // By place along the axis: the input, and the place in it.
  std::vector<std::pair<const OnnxValue*, std::int64_t>> parts;
  const std::int64_t extent = type->shape[*axis].constant;
  if (extent > static_cast<std::int64_t>(most_kept_numbers)) return constant_value(*type);
  for (const OnnxValue* input : inputs) {
    for (std::int64_t i = 0; i < input->type.shape[*axis].constant; ++i)
      parts.emplace_back(input, i);
  }
  OnnxValue result = chosen(*type, budget, [&](const Places& place, Source& source) {
    const auto& [from, at] = parts[static_cast<std::size_t>(place[*axis])];
    source.from = from;
    source.place = place;
    source.place[*axis] = at;
    return true;
  });
  return is_known(result) ? result : constant_value(*type);
}

// The selection along one axis of a Slice: `count` elements from `first` on, with a step that may
// be negative.
struct Stretch {
  std::size_t axis = 0;
  std::int64_t first = 0, step = 1, count = 0;
};

Stretch stretch_of(const OnnxSlice& slice, std::int64_t extent) {
  const auto bounded = [&](std::int64_t place, std::int64_t least, std::int64_t most) {
    return std::clamp(place < 0 ? place + extent : place, least, most);
  };
  if (extent == 0) return {slice.axis, 0, 1, 0};
  const bool forward = slice.step > 0;
  const std::int64_t first = bounded(slice.start.constant, 0, forward ? extent : extent - 1);
  const std::int64_t last = forward ? bounded(slice.end.constant, 0, extent)
                                    : bounded(slice.end.constant, -1, extent - 1);
  const std::int64_t distance = forward ? last - first : first - last;
  if (distance <= 0) return {slice.axis, 0, 1, 0};
  // A stride longer than the axis takes one element; -INT64_MIN has no value.
  const bool is_longer = slice.step > extent || slice.step < -extent;
  const std::int64_t stride = is_longer ? extent : forward ? slice.step : -slice.step;
  return {slice.axis, first, forward ? stride : -stride, (distance - 1) / stride + 1};
}

std::optional<OnnxValue> fold_slice(const OnnxNode& node, const Inputs& inputs,
                                    FoldingBudget& budget) {
  const auto slices = slices_of(node, inputs);
  if (!slices) return std::nullopt;
  TensorType type = inputs[0]->type;
  std::vector<Stretch> stretches;
  for (const OnnxSlice& slice : *slices) {
    const Affine extent = type.shape[slice.axis];
    if (!extent.is_constant() || !slice.start.is_constant() || !slice.end.is_constant()) {
      return std::nullopt;
    }
    stretches.push_back(stretch_of(slice, extent.constant));
    type.shape[slice.axis] = Affine(stretches.back().count);
  }
  if (!is_known(*inputs[0])) return constant_value(std::move(type));
  return chosen(std::move(type), budget, [&](const Places& place, Source& source) {
    source.from = inputs[0];
    source.place = place;
    for (const Stretch& one : stretches) {
      source.place[one.axis] = one.first + place[one.axis] * one.step;
    }
    return true;
  });
}

}  // namespace

bool selects_by_position(std::string_view op) {
  constexpr std::array<std::string_view, 4> all{"Slice", "Gather", "Transpose", "Concat"};
  return std::ranges::find(all, op) != all.end();
}

std::optional<OnnxValue> fold_selection(const OnnxNode& node, const Inputs& inputs,
                                        FoldingBudget& budget) {
  if (node.op == "Slice") return fold_slice(node, inputs, budget);
  if (node.op == "Gather") return fold_gather(node, inputs, budget);
  if (node.op == "Transpose") return fold_transpose(node, inputs, budget);
  return fold_concat(node, inputs, budget);
}

}  // namespace stowage
