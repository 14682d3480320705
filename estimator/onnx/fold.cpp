// Constant folding: computes the nodes of a graph that depend only on sizes and constants.
//
// Integers are affine in the batch. Where a number would not be (batch times batch), or a tensor is
// too large to be kept, the result is a constant of known type and unknown numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "estimator/onnx/checked_axes.hpp"
#include "estimator/onnx/onnx_value.hpp"

namespace stowage {

namespace {

using Inputs = std::vector<const OnnxValue*>;
using Numbers = std::vector<Affine>;

// The numbers, broadcast to a shape of `count` elements. nullopt: they do not broadcast to it.
template <typename Number>
std::optional<std::vector<Number>> spread(const std::vector<Number>& numbers, const Shape& from,
                                          const Shape& to, std::size_t count) {
  if (count == 0) return std::vector<Number>();
  if (from == to && numbers.size() == count) return numbers;
  if (from.size() > to.size()) return std::nullopt;
  std::vector<std::size_t> strides(to.size());  // 0: the axis is repeated
  std::size_t stride = 1;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Affine own = from[from.size() - 1 - i];
    const Affine wide = to[to.size() - 1 - i];
    if (own == Affine(1)) continue;
    if (own != wide) return std::nullopt;
    strides[to.size() - 1 - i] = stride;
    stride *= static_cast<std::size_t>(own.constant);
  }
  if (numbers.size() != stride) return std::nullopt;
  std::vector<Number> all;
  all.reserve(count);
  std::vector<std::int64_t> place(to.size());
  std::size_t source = 0;
  while (all.size() < count) {
    all.push_back(numbers[source]);
    for (std::size_t axis = to.size(); axis-- > 0;) {
      source += strides[axis];
      if (++place[axis] < to[axis].constant) break;
      source -= strides[axis] * static_cast<std::size_t>(to[axis].constant);
      place[axis] = 0;
    }
  }
  return all;
}

using MaybeNumber = std::optional<Affine>;

// A comparison of numbers that do not depend on the batch; nullopt: one does.
template <typename Compare>
MaybeNumber compared(Affine a, Affine b, Compare compare) {
  if (!a.is_constant() || !b.is_constant()) return std::nullopt;
  return Affine(compare(a.constant, b.constant) ? 1 : 0);
}

MaybeNumber divided(Affine a, Affine b) {
  if (b == Affine(0)) return std::nullopt;
  if (divides(b, a)) return quotient(a, b);
  if (a.is_constant() && b.is_constant()) return Affine(checked_divide(a.constant, b.constant));
  return std::nullopt;
}

MaybeNumber remainder_of(Affine a, Affine b) {
  if (!a.is_constant() || !b.is_constant() || b.constant <= 0) return std::nullopt;
  const std::int64_t rest = checked_remainder(a.constant, b.constant);
  return Affine(rest < 0 ? rest + b.constant : rest);
}

MaybeNumber extreme(Affine a, Affine b, bool least) {
  if (a == b) return a;
  if (a.slope != b.slope) return std::nullopt;
  return (a.constant < b.constant) == least ? a : b;
}

struct IntegerFold {
  std::string_view op;
  MaybeNumber (*apply)(Affine, Affine);
};

constexpr std::array<IntegerFold, 15> integer_folds{{
    {"Add", [](Affine a, Affine b) -> MaybeNumber { return a + b; }},
    {"Sub", [](Affine a, Affine b) -> MaybeNumber { return a - b; }},
    {"Mul", [](Affine a, Affine b) -> MaybeNumber { return a * b; }},
    {"Div", divided},
    {"Mod", remainder_of},
    {"Min", [](Affine a, Affine b) { return extreme(a, b, true); }},
    {"Max", [](Affine a, Affine b) { return extreme(a, b, false); }},
    // A size that grows with the batch is never -1 or 0, which exporters compare with.
    {"Equal", [](Affine a, Affine b) -> MaybeNumber { return Affine(a == b ? 1 : 0); }},
    {"Less", [](Affine a, Affine b) { return compared(a, b, std::less<>()); }},
    {"LessOrEqual", [](Affine a, Affine b) { return compared(a, b, std::less_equal<>()); }},
    {"Greater", [](Affine a, Affine b) { return compared(a, b, std::greater<>()); }},
    {"GreaterOrEqual", [](Affine a, Affine b) { return compared(a, b, std::greater_equal<>()); }},
    {"And", [](Affine a, Affine b) { return compared(a, b, std::logical_and<>()); }},
    {"Or", [](Affine a, Affine b) { return compared(a, b, std::logical_or<>()); }},
    {"Xor",
     [](Affine a, Affine b) {
       return compared(a, b, [](auto x, auto y) { return (x != 0) != (y != 0); });
     }},
}};

struct RealFold {
  std::string_view op;
  double (*apply)(double, double);
};

constexpr std::array<RealFold, 7> real_folds{{
    {"Add", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"Div", [](double a, double b) { return a / b; }},
    {"Pow", [](double a, double b) { return std::pow(a, b); }},
    {"Min", [](double a, double b) { return std::min(a, b); }},
    {"Max", [](double a, double b) { return std::max(a, b); }},
}};

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
  const Shape& shape = result.type.shape;
  const auto of_integers = std::ranges::find(integer_folds, node.op, &IntegerFold::op);
  const auto of_reals = std::ranges::find(real_folds, node.op, &RealFold::op);
  if (!a.integers.empty() && !b.integers.empty() && of_integers != integer_folds.end()) {
    const auto left = spread(a.integers, a.type.shape, shape, count);
    const auto right = spread(b.integers, b.type.shape, shape, count);
    if (!left || !right) return;
    for (std::size_t i = 0; i < count; ++i) {
      const auto number = of_integers->apply((*left)[i], (*right)[i]);
      if (!number) return result.integers.clear();
      result.integers.push_back(*number);
    }
  } else if (!a.reals.empty() && !b.reals.empty() && of_reals != real_folds.end()) {
    const auto left = spread(a.reals, a.type.shape, shape, count);
    const auto right = spread(b.reals, b.type.shape, shape, count);
    if (!left || !right) return;
    for (std::size_t i = 0; i < count; ++i) {
      result.reals.push_back(of_reals->apply((*left)[i], (*right)[i]));
    }
  }
}

void fold_choice(const Inputs& inputs, std::size_t count, OnnxValue& result) {
  const OnnxValue& condition = *inputs[0];
  if (condition.integers.empty()) return;
  const Shape& shape = result.type.shape;
  const auto truth = spread(condition.integers, condition.type.shape, shape, count);
  const auto choose = [&](const auto& a, const auto& b, auto& into) {
    if (!truth || a.empty() || b.empty()) return;
    const auto left = spread(a, inputs[1]->type.shape, shape, count);
    const auto right = spread(b, inputs[2]->type.shape, shape, count);
    if (!left || !right) return;
    for (std::size_t i = 0; i < count; ++i) {
      into.push_back((*truth)[i] != Affine(0) ? (*left)[i] : (*right)[i]);
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
  const auto pair = std::ranges::find(integer_folds, op, &IntegerFold::op);
  if (pair == integer_folds.end()) return;
  Affine total = from.integers[0];
  for (std::size_t i = 1; i < from.integers.size(); ++i) {
    const auto next = pair->apply(total, from.integers[i]);
    if (!next) return;
    total = *next;
  }
  result.integers = {total};
}

// [from, to) by steps: the shape is known where the numbers are.
std::optional<OnnxValue> fold_range(const Inputs& inputs, FoldingBudget& budget) {
  if (inputs.size() != 3) return std::nullopt;
  const auto first = inputs[0]->scalar();
  const auto last = inputs[1]->scalar();
  const auto step = inputs[2]->scalar();
  const TensorType& type = inputs[0]->type;
  if (!first || !step) return std::nullopt;
  if (!last) {  // up to the batch
    const bool plain = *first == 0 && *step == 1 && inputs[1]->integers.size() == 1;
    if (!plain || inputs[1]->integers[0].slope < 1) return std::nullopt;
    return constant_value({Shape{inputs[1]->integers[0]}, type.type});
  }
  constexpr double most = 1e9;
  const double count = std::ceil((*last - *first) / *step);
  if (!(count >= 0 && count < most)) return std::nullopt;
  const auto elements = static_cast<std::int64_t>(count);
  OnnxValue result = constant_value({Shape{Affine(elements)}, type.type});
  const auto start = inputs[0]->integer();
  const auto stride = inputs[2]->integer();
  const auto kept = small_count(result.type.shape);
  if (is_floating_point(type.type) || !start || !stride || !kept || !budget.take(*kept)) {
    return result;
  }
  for (std::int64_t i = 0; i < elements; ++i) {
    result.integers.emplace_back(checked_add(*start, checked_multiply(i, *stride)));
  }
  return result;
}

std::vector<OnnxValue> fold_split(const OnnxNode& node, const Inputs& inputs,
                                  FoldingBudget& budget) {
  const OnnxValue& from = *inputs[0];
  const std::size_t count = from.integers.size();
  if (from.rank() != 1 || small_count(from.type.shape) != count || !budget.take(count)) return {};
  const auto sizes = split_sizes(node, inputs, static_cast<std::int64_t>(count));
  if (!sizes) return {};
  std::vector<OnnxValue> parts;
  auto next = from.integers.begin();
  for (const std::int64_t size : *sizes) {
    parts.push_back(
        constant_value({Shape{Affine(size)}, from.type.type}, Numbers(next, next + size)));
    next += size;
  }
  return parts;
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
    const Shape& shape = result.type.shape;
    const auto integers = spread(first.integers, first.type.shape, shape, count);
    const auto reals = spread(first.reals, first.type.shape, shape, count);
    result.integers = integers.value_or(Numbers());
    result.reals = reals.value_or(std::vector<double>());
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
  if (orders && inputs.size() == 2) {
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

// How many numbers are read or made where a result of `count` elements is computed.
std::size_t folding_work(const OnnxNode& node, const Inputs& inputs, std::size_t count) {
  return node.op.starts_with("Reduce") ? std::max(count, inputs[0]->integers.size()) : count;
}

// The first output of a node with a type by ONNX's rule.
std::optional<OnnxValue> fold_typed(const OnnxNode& node, const Inputs& inputs,
                                    FoldingBudget& budget) {
  std::optional<TensorType> type = infer_type(node, inputs);
  if (node.op == "Flatten" && inputs[0]->rank() == 1) type = inputs[0]->type;
  if (!type) return std::nullopt;
  OnnxValue result = constant_value(*type);
  const auto count = small_count(type->shape);
  if (!count || !budget.take(folding_work(node, inputs, *count))) return result;
  if (is_rearrangement(node.op)) {
    result.integers = inputs[0]->integers;
    result.reals = inputs[0]->reals;
    return result;
  }
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

std::vector<OnnxValue> folded_outputs(const OnnxNode& node, const Inputs& inputs,
                                      FoldingBudget& budget) {
  if (inputs.empty() || inputs[0]->is_absent() || node.outputs.empty()) return {};
  if (node.op == "Split") return fold_split(node, inputs, budget);
  auto result = node.op == "Range"             ? fold_range(inputs, budget)
                : selects_by_position(node.op) ? fold_selection(node, inputs, budget)
                                               : fold_typed(node, inputs, budget);
  if (!result) return {};
  std::vector<OnnxValue> outputs;
  outputs.push_back(*std::move(result));
  return outputs;
}

}  // namespace

std::vector<OnnxValue> fold(const OnnxNode& node, const Inputs& inputs, FoldingBudget& budget) {
  std::vector<OnnxValue> outputs = folded_outputs(node, inputs, budget);
  for (OnnxValue& output : outputs) {
    drop_excess_numbers(output);
    if (output.rank() > 1) output.is_causal_mask = makes_causal_mask(node, inputs, output);
  }
  return outputs;
}

}  // namespace stowage
