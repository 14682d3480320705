// Constant folding of nodes that select elements by their positions.
//
// Each rule says which element of the input an element of the result is. The result's size is known
// even if the numbers are not (large tables, masks).
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "estimator/onnx/onnx_value.hpp"

namespace stowage {

namespace {

using Inputs = std::vector<const OnnxValue*>;
using Places = std::vector<std::int64_t>;  // an element's coordinates

// Row-major.
std::size_t flat_place(const Places& place, const Shape& shape) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i].constant + place[i];
  return static_cast<std::size_t>(flat);
}

// Counts `place` up within `shape`.
void advance(Places& place, const Shape& shape) {
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (++place[i] < shape[i].constant) return;
    place[i] = 0;
  }
}

// `source`: maps the result's coordinates to those in `from`; nothing: there are none.
OnnxValue chosen(const OnnxValue& from, TensorType type,
                 const std::function<std::optional<Places>(const Places&)>& source) {
  OnnxValue result = constant_value(std::move(type));
  const auto count = small_count(result.type.shape);
  if (!count || !is_known(from)) return result;
  Places place(result.rank());
  for (std::size_t i = 0; i < *count; ++i) {
    const auto at = source(place);
    if (!at) return constant_value(result.type);
    const std::size_t flat = flat_place(*at, from.type.shape);
    if (!from.integers.empty()) result.integers.push_back(from.integers[flat]);
    if (!from.reals.empty()) result.reals.push_back(from.reals[flat]);
    advance(place, result.type.shape);
  }
  return result;
}

std::optional<OnnxValue> fold_gather(const OnnxNode& node, const Inputs& inputs) {
  const auto type = infer_type(node, inputs);
  if (!type) return std::nullopt;
  const OnnxValue& from = *inputs[0];
  const OnnxValue& indices = *inputs[1];
  const std::size_t axis = axis_in(node.integer("axis", 0), from.rank()).value_or(0);
  const auto numbers = indices.numbers();
  if (!numbers) return constant_value(*type);
  return chosen(from, *type, [&](const Places& place) -> std::optional<Places> {
    const auto first = place.begin() + static_cast<std::ptrdiff_t>(axis);
    const auto last = first + static_cast<std::ptrdiff_t>(indices.rank());
    const std::size_t which = flat_place(Places(first, last), indices.type.shape);
    const auto extent = static_cast<std::size_t>(from.type.shape[axis].constant);
    const auto at = axis_in((*numbers)[which], extent);
    if (!at) return std::nullopt;
    Places source(place.begin(), first);
    source.push_back(static_cast<std::int64_t>(*at));
    source.insert(source.end(), last, place.end());
    return source;
  });
}

std::optional<OnnxValue> fold_transpose(const OnnxNode& node, const Inputs& inputs) {
  const auto type = infer_type(node, inputs);
  if (!type) return std::nullopt;
  const std::vector<std::int64_t> order = node.integers("perm");
  return chosen(*inputs[0], *type, [&](const Places& place) {
    Places source(place.rbegin(), place.rend());
    for (std::size_t i = 0; i < order.size(); ++i) {
      source[axis_in(order[i], place.size()).value_or(0)] = place[i];
    }
    return std::optional(source);
  });
}

std::optional<OnnxValue> fold_concat(const OnnxNode& node, const Inputs& inputs) {
  const auto type = infer_type(node, inputs);
  if (!type) return std::nullopt;
  OnnxValue result = constant_value(*type);
  const auto count = small_count(type->shape);
  const bool is_whole =
      count && std::ranges::all_of(inputs, [](const OnnxValue* one) { return is_known(*one); });
  if (!is_whole) return result;
  const std::size_t axis = axis_in(node.integer("axis", 0), result.rank()).value_or(0);
  Places place(result.rank());
  for (std::size_t i = 0; i < *count; ++i) {
    Places source = place;
    std::size_t part = 0;
    while (part + 1 < inputs.size() && source[axis] >= inputs[part]->type.shape[axis].constant) {
      source[axis] -= inputs[part++]->type.shape[axis].constant;
    }
    const OnnxValue& from = *inputs[part];
    const std::size_t flat = flat_place(source, from.type.shape);
    if (!from.integers.empty() && flat < from.integers.size())
      result.integers.push_back(from.integers[flat]);
    if (!from.reals.empty() && flat < from.reals.size()) result.reals.push_back(from.reals[flat]);
    advance(place, result.type.shape);
  }
  return is_known(result) ? result : constant_value(*type);
}

// The selection along one axis of a Slice: `count` elements from `first` on, with a step that may
// be negative.
struct Stretch {
  std::size_t axis = 0;
  std::int64_t first = 0, step = 1, count = 0;
};

std::optional<Stretch> stretch_of(std::size_t axis, std::int64_t extent, std::int64_t start,
                                  std::int64_t end, std::int64_t step) {
  if (step == 0) return std::nullopt;
  const auto bounded = [&](std::int64_t place, std::int64_t least, std::int64_t most) {
    return std::clamp(place < 0 ? place + extent : place, least, most);
  };
  const bool forward = step > 0;
  const std::int64_t first = bounded(start, 0, forward ? extent : extent - 1);
  const std::int64_t last = forward ? bounded(end, 0, extent) : bounded(end, -1, extent - 1);
  const std::int64_t distance = forward ? last - first : first - last;
  if (distance <= 0 || extent == 0) return Stretch{axis, 0, 1, 0};
  // A stride longer than the axis takes one element; -INT64_MIN has no value.
  const std::int64_t stride = step > extent || step < -extent ? extent : (forward ? step : -step);
  return Stretch{axis, first, forward ? stride : -stride, (distance + stride - 1) / stride};
}

std::optional<std::vector<Stretch>> stretches_of(const OnnxNode& node, const Inputs& inputs) {
  const auto given = [&](std::string_view attribute, std::size_t input) {
    if (const OnnxAttribute* found = node.find(attribute)) return std::optional(found->integers);
    if (input >= inputs.size() || inputs[input]->is_absent()) {
      return std::optional<Places>(std::in_place);
    }
    return inputs[input]->numbers();
  };
  const auto starts = given("starts", 1);
  const auto ends = given("ends", 2);
  auto axes = given("axes", 3);
  auto steps = given("steps", 4);
  if (!starts || !ends || !axes || !steps || starts->size() != ends->size()) return std::nullopt;
  if (axes->empty()) {
    axes->resize(starts->size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (steps->empty()) steps->assign(starts->size(), 1);
  if (axes->size() != starts->size() || steps->size() != starts->size()) return std::nullopt;
  std::vector<Stretch> stretches;
  const Shape& shape = inputs[0]->type.shape;
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const auto axis = axis_in((*axes)[i], shape.size());
    const bool again = std::ranges::any_of(
        stretches, [&](const Stretch& one) { return axis && one.axis == *axis; });
    if (!axis || again || !shape[*axis].is_constant()) return std::nullopt;
    const auto stretch =
        stretch_of(*axis, shape[*axis].constant, (*starts)[i], (*ends)[i], (*steps)[i]);
    if (!stretch) return std::nullopt;
    stretches.push_back(*stretch);
  }
  return stretches;
}

std::optional<OnnxValue> fold_slice(const OnnxNode& node, const Inputs& inputs) {
  const auto stretches = stretches_of(node, inputs);
  if (!stretches) return std::nullopt;
  TensorType type = inputs[0]->type;
  for (const Stretch& one : *stretches) type.shape[one.axis] = Affine(one.count);
  return chosen(*inputs[0], std::move(type), [&](const Places& place) {
    Places source = place;
    for (const Stretch& one : *stretches) {
      source[one.axis] = one.first + place[one.axis] * one.step;
    }
    return std::optional(source);
  });
}

}  // namespace

bool selects_by_position(std::string_view op) {
  constexpr std::array<std::string_view, 4> all{"Slice", "Gather", "Transpose", "Concat"};
  return std::ranges::find(all, op) != all.end();
}

std::optional<OnnxValue> fold_selection(const OnnxNode& node, const Inputs& inputs) {
  if (node.op == "Slice") return fold_slice(node, inputs);
  if (node.op == "Gather") return fold_gather(node, inputs);
  if (node.op == "Transpose") return fold_transpose(node, inputs);
  return fold_concat(node, inputs);
}

}  // namespace stowage
