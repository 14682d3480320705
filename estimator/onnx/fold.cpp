// Constant folding: computes the nodes of a graph that depend only on sizes and constants.
//
// Integers are affine in the batch. Where a number would not be (batch times batch), or a tensor is
// too large to be kept, the result is a constant of known type and unknown numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "estimator/onnx/onnx_value.hpp"

namespace stowage {

namespace {

using Inputs = std::vector<const OnnxValue*>;
using Numbers = std::vector<Affine>;

// For each element of `to`, the element of `from` that is broadcast to it.
std::size_t source_of(std::size_t element, const std::vector<std::int64_t>& to,
                      const std::vector<std::int64_t>& from) {
  std::size_t source = 0;
  std::size_t stride = 1;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto extent = static_cast<std::size_t>(to[to.size() - 1 - i]);
    const std::size_t place = element % extent;
    element /= extent;
    if (i >= from.size()) continue;
    const auto own = static_cast<std::size_t>(from[from.size() - 1 - i]);
    if (own != 1) source += place * stride;
    stride *= own;
  }
  return source;
}

template <typename Number>
std::vector<Number> spread(const std::vector<Number>& numbers, const Shape& from, const Shape& to,
                           std::size_t count) {
  const auto wide = at_batch(to, 1);
  const auto own = at_batch(from, 1);
  std::vector<Number> all;
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) all.push_back(numbers[source_of(i, wide, own)]);
  return all;
}

// 1, 0, or nullopt: it depends on the batch.
std::optional<bool> compared(std::string_view op, Affine a, Affine b) {
  if (op == "Equal") {
    if (a == b) return true;
    if (a.is_constant() && b.is_constant()) return false;
    // A size that grows with the batch is never -1 or 0, which exporters compare with.
    return false;
  }
  if (!a.is_constant() || !b.is_constant()) return std::nullopt;
  if (op == "Less") return a.constant < b.constant;
  if (op == "LessOrEqual") return a.constant <= b.constant;
  if (op == "Greater") return a.constant > b.constant;
  if (op == "GreaterOrEqual") return a.constant >= b.constant;
  if (op == "And") return a.constant != 0 && b.constant != 0;
  if (op == "Or") return a.constant != 0 || b.constant != 0;
  if (op == "Xor") return (a.constant != 0) != (b.constant != 0);
  return std::nullopt;
}

std::optional<Affine> calculated(std::string_view op, Affine a, Affine b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") {
    if (b == Affine(0)) return std::nullopt;
    if (divides(b, a)) return quotient(a, b);
    if (a.is_constant() && b.is_constant()) return Affine(a.constant / b.constant);
    return std::nullopt;
  }
  if (op == "Mod" && a.is_constant() && b.is_constant() && b.constant > 0) {
    const std::int64_t rest = a.constant % b.constant;
    return Affine(rest < 0 ? rest + b.constant : rest);
  }
  if (op == "Min" || op == "Max") {
    if (a == b) return a;
    const bool comparable = a.slope == b.slope;
    if (!comparable) return std::nullopt;
    return (a.constant < b.constant) == (op == "Min") ? a : b;
  }
  if (const auto truth = compared(op, a, b)) return Affine(*truth ? 1 : 0);
  return std::nullopt;
}

std::optional<double> calculated_real(std::string_view op, double a, double b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (op == "Pow") return std::pow(a, b);
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  return std::nullopt;
}

std::optional<double> function_of(std::string_view op, double x) {
  if (op == "Sqrt") return std::sqrt(x);
  if (op == "Neg") return -x;
  if (op == "Floor") return std::floor(x);
  if (op == "Ceil") return std::ceil(x);
  if (op == "Exp") return std::exp(x);
  if (op == "Log") return std::log(x);
  if (op == "Reciprocal") return 1 / x;
  if (op == "Abs") return std::abs(x);
  return std::nullopt;
}

void fold_pairs(const OnnxNode& node, const Inputs& inputs, std::size_t count, OnnxValue& result) {
  const OnnxValue& a = *inputs[0];
  const OnnxValue& b = *inputs[1];
  if (!a.integers.empty() && !b.integers.empty()) {
    const Numbers left = spread(a.integers, a.type.shape, result.type.shape, count);
    const Numbers right = spread(b.integers, b.type.shape, result.type.shape, count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto number = calculated(node.op, left[i], right[i]);
      if (!number) return result.integers.clear();
      result.integers.push_back(*number);
    }
  } else if (!a.reals.empty() && !b.reals.empty()) {
    const auto left = spread(a.reals, a.type.shape, result.type.shape, count);
    const auto right = spread(b.reals, b.type.shape, result.type.shape, count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto number = calculated_real(node.op, left[i], right[i]);
      if (!number) return result.reals.clear();
      result.reals.push_back(*number);
    }
  }
}

void fold_choice(const Inputs& inputs, std::size_t count, OnnxValue& result) {
  const OnnxValue& condition = *inputs[0];
  if (condition.integers.empty()) return;
  const Numbers truth = spread(condition.integers, condition.type.shape, result.type.shape, count);
  const auto choose = [&](const auto& a, const auto& b, auto& into) {
    if (a.empty() || b.empty()) return;
    const auto left = spread(a, inputs[1]->type.shape, result.type.shape, count);
    const auto right = spread(b, inputs[2]->type.shape, result.type.shape, count);
    for (std::size_t i = 0; i < count; ++i) {
      into.push_back(truth[i] != Affine(0) ? left[i] : right[i]);
    }
  };
  choose(inputs[1]->integers, inputs[2]->integers, result.integers);
  choose(inputs[1]->reals, inputs[2]->reals, result.reals);
}

void fold_cast(const OnnxValue& from, OnnxValue& result) {
  const bool to_real = is_floating_point(result.type.type);
  if (to_real == from.integers.empty()) {
    result.integers = from.integers;
    result.reals = from.reals;
    return;
  }
  for (const Affine& one : from.integers) {
    if (!one.is_constant()) return result.reals.clear();
    result.reals.push_back(static_cast<double>(one.constant));
  }
  constexpr double largest = 9e18;
  for (const double one : from.reals) {
    if (!(std::abs(one) < largest)) return result.integers.clear();
    result.integers.emplace_back(static_cast<std::int64_t>(one));
  }
}

void fold_reduction(const OnnxNode& node, const OnnxValue& from, OnnxValue& result) {
  if (from.integers.empty() || element_count(result.type.shape) != Affine(1)) return;
  const std::string_view op = node.op == "ReduceProd"  ? "Mul"
                              : node.op == "ReduceSum" ? "Add"
                              : node.op == "ReduceMax" ? "Max"
                              : node.op == "ReduceMin" ? "Min"
                                                       : "";
  Affine total = from.integers[0];
  for (std::size_t i = 1; i < from.integers.size(); ++i) {
    const auto next = calculated(op, total, from.integers[i]);
    if (!next) return;
    total = *next;
  }
  if (!op.empty()) result.integers = {total};
}

// [from, to) by steps: the shape is known where the numbers are.
std::optional<OnnxValue> fold_range(const Inputs& inputs) {
  if (inputs.size() != 3) return std::nullopt;
  const auto first = inputs[0]->scalar();
  const auto last = inputs[1]->scalar();
  const auto step = inputs[2]->scalar();
  const TensorType& type = inputs[0]->type;
  if (!first || !step) return std::nullopt;
  if (!last) {  // up to the batch
    const bool plain = *first == 0 && *step == 1 && inputs[1]->integers.size() == 1;
    if (!plain) return std::nullopt;
    return constant_value({Shape{inputs[1]->integers[0]}, type.type});
  }
  constexpr double most = 1e9;
  const double count = std::ceil((*last - *first) / *step);
  if (!(count >= 0 && count < most)) return std::nullopt;
  OnnxValue result = constant_value({Shape{Affine(static_cast<std::int64_t>(count))}, type.type});
  if (is_floating_point(type.type) || count > static_cast<double>(most_kept_numbers)) return result;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    result.integers.emplace_back(static_cast<std::int64_t>(*first) +
                                 i * static_cast<std::int64_t>(*step));
  }
  return result;
}

std::optional<OnnxValue> fold_split(const OnnxNode& node, const Inputs& inputs,
                                    std::size_t output) {
  const OnnxValue& from = *inputs[0];
  if (from.rank() != 1 || !is_known(from)) return std::nullopt;
  std::vector<std::int64_t> sizes = node.integers("split");
  if (sizes.empty() && inputs.size() > 1) sizes = inputs[1]->numbers().value_or(sizes);
  const auto total = static_cast<std::int64_t>(from.integers.size());
  const auto parts = static_cast<std::int64_t>(node.outputs.size());
  if (parts > total) return std::nullopt;
  if (sizes.empty() && parts > 0 && total % parts == 0)
    sizes.assign(node.outputs.size(), total / parts);
  if (output >= sizes.size()) return std::nullopt;
  const std::int64_t first = std::accumulate(
      sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(output), std::int64_t{0});
  if (first < 0 || sizes[output] < 0 || first + sizes[output] > total) return std::nullopt;
  return constant_value(
      {Shape{Affine(sizes[output])}, from.type.type},
      Numbers(from.integers.begin() + first, from.integers.begin() + first + sizes[output]));
}

bool is_rearrangement(std::string_view op) {
  return op == "Unsqueeze" || op == "Squeeze" || op == "Reshape" || op == "Identity" ||
         op == "Flatten";
}

void fold_numbers(const OnnxNode& node, const Inputs& inputs, std::size_t count,
                  OnnxValue& result) {
  const OnnxValue& first = *inputs[0];
  if (node.op == "Cast" || node.op == "CastLike") return fold_cast(first, result);
  if (node.op == "Where" && inputs.size() == 3) return fold_choice(inputs, count, result);
  if (node.op.starts_with("Reduce")) return fold_reduction(node, first, result);
  if (node.op == "Expand" && is_known(first)) {
    if (!first.integers.empty()) {
      result.integers = spread(first.integers, first.type.shape, result.type.shape, count);
    }
    if (!first.reals.empty()) {
      result.reals = spread(first.reals, first.type.shape, result.type.shape, count);
    }
    return;
  }
  if (node.op == "Not") {
    for (const Affine& one : first.integers) result.integers.emplace_back(one == Affine(0) ? 1 : 0);
    return;
  }
  if (inputs.size() == 1) {
    for (const double one : first.reals) {
      const auto number = function_of(node.op, one);
      if (!number) return result.reals.clear();
      result.reals.push_back(*number);
    }
    if (node.op != "Neg") return;
    for (const Affine& one : first.integers) result.integers.push_back(Affine(0) - one);
    return;
  }
  if (inputs.size() == 2 && node.op != "Mean") fold_pairs(node, inputs, count, result);
}

}  // namespace

namespace {

// 0, 1, 2... along one axis: of `rank - axis` from the last.
bool counts_along(const OnnxValue& value, std::size_t from_last) {
  if (value.rank() < 2 || value.integers.empty()) return false;
  const Affine extent = value.type.shape[value.rank() - from_last];
  if (extent != element_count(value.type.shape)) return false;
  for (std::size_t i = 0; i < value.integers.size(); ++i) {
    if (value.integers[i] != Affine(static_cast<std::int64_t>(i))) return false;
  }
  return value.integers.size() > 1;
}

bool is_square(const Shape& shape) {
  const std::size_t rank = shape.size();
  return rank >= 2 && shape[rank - 1] == shape[rank - 2] && shape[rank - 1] != Affine(1);
}

// A causal mask is made by Trilu, or by comparing positions with positions. It remains one after
// casts, selections and reshapes.
bool makes_causal_mask(const OnnxNode& node, const Inputs& inputs, const OnnxValue& result) {
  if (node.op == "Trilu") return node.integer("upper", 1) == 0 || inputs[0]->is_causal_mask;
  const bool orders = node.op == "LessOrEqual" || node.op == "GreaterOrEqual" ||
                      node.op == "Less" || node.op == "Greater";
  // Positions that were gathered for each sample, whose numbers are not kept.
  if (orders && inputs.size() == 2 && inputs[0]->integers.empty() && inputs[1]->integers.empty() &&
      inputs[0]->type.type == DataType::int64 && is_square(result.type.shape)) {
    return true;
  }
  if (inputs.size() == 2) {
    const bool keys_first = counts_along(*inputs[0], 1) && counts_along(*inputs[1], 2);
    const bool queries_first = counts_along(*inputs[0], 2) && counts_along(*inputs[1], 1);
    if (keys_first && (node.op == "LessOrEqual" || node.op == "Greater")) return true;
    if (queries_first && (node.op == "GreaterOrEqual" || node.op == "Less")) return true;
  }
  constexpr std::array<std::string_view, 14> keepers{
      "Cast",   "CastLike", "Not", "And", "Where",   "Unsqueeze", "Squeeze",
      "Expand", "Slice",    "Mul", "Sub", "Reshape", "Identity",  "Or"};
  return std::ranges::find(keepers, node.op) != keepers.end() &&
         std::ranges::any_of(inputs, [](const OnnxValue* one) { return one->is_causal_mask; });
}

std::optional<OnnxValue> folded_numbers(const OnnxNode& node, const Inputs& inputs,
                                        std::size_t output);

}  // namespace

std::optional<OnnxValue> fold(const OnnxNode& node, const Inputs& inputs, std::size_t output) {
  auto result = folded_numbers(node, inputs, output);
  if (result && result->rank() > 1)
    result->is_causal_mask = makes_causal_mask(node, inputs, *result);
  return result;
}

namespace {

std::optional<OnnxValue> folded_numbers(const OnnxNode& node, const Inputs& inputs,
                                        std::size_t output) {
  if (inputs.empty() || inputs[0]->is_absent()) return std::nullopt;
  if (node.op == "Range") return fold_range(inputs);
  if (node.op == "Split") return fold_split(node, inputs, output);
  if (output > 0) return std::nullopt;
  if (selects_by_position(node.op)) return fold_selection(node, inputs);
  std::optional<TensorType> type = infer_type(node, inputs);
  if (node.op == "Flatten" && inputs[0]->rank() == 1) type = inputs[0]->type;
  if (!type) return std::nullopt;
  OnnxValue result = constant_value(*type);
  if (is_rearrangement(node.op)) {
    result.integers = inputs[0]->integers;
    result.reals = inputs[0]->reals;
    return result;
  }
  const auto count = small_count(type->shape);
  if (!count) return result;
  if (node.op == "ConstantOfShape") {
    const OnnxAttribute* value = node.find("value");
    const bool is_given = value != nullptr && value->tensor;
    if (is_floating_point(type->type)) {
      result.reals.assign(*count,
                          is_given && !value->tensor->reals.empty() ? value->tensor->reals[0] : 0);
    } else if (is_given && !value->tensor->integers.empty()) {
      result.integers.assign(*count, Affine(value->tensor->integers[0]));
    }
    return result;
  }
  try {
    fold_numbers(node, inputs, *count, result);
  } catch (const NotAffine&) {
    result.integers.clear();
  }
  return result;
}

}  // namespace

}  // namespace stowage
