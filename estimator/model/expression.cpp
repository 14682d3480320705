#include "estimator/model/expression.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <limits>

#include "estimator/base/bytes.hpp"

namespace stowage {

namespace {

using Operator = Expression::Operator;
using Node = Expression::Node;

// Thrown within one evaluation only, so that the arithmetic below reads as arithmetic.
struct Refusal {
  std::string message;
  std::string hint = {};
};

std::string_view spelling(Operator op) {
  switch (op) {
    case Operator::negate:
    case Operator::subtract:
      return "-";
    case Operator::logical_not:
      return "not";
    case Operator::add:
      return "+";
    case Operator::multiply:
      return "*";
    case Operator::divide:
      return "/";
    case Operator::floor_divide:
      return "//";
    case Operator::modulo:
      return "%";
    case Operator::equal:
      return "==";
    case Operator::unequal:
      return "!=";
    case Operator::less:
      return "<";
    case Operator::less_equal:
      return "<=";
    case Operator::greater:
      return ">";
    case Operator::greater_equal:
      return ">=";
    case Operator::logical_and:
      return "and";
    case Operator::logical_or:
      return "or";
    case Operator::choose:
      return "if";
    default:
      return "";
  }
}

std::int64_t constant_of(Operator op, Affine a) {
  if (a.is_constant()) return a.constant;
  throw Refusal{
      fmt::format("'{}' cannot take {}, which depends on the batch", spelling(op), a.to_string())};
}

// Quotient and remainder rounded towards minus infinity, as Python's.
std::int64_t floor_divide(Operator op, Affine a, Affine b) {
  const std::int64_t x = constant_of(op, a);
  const std::int64_t y = constant_of(op, b);
  if (y == 0) throw Refusal{"division by zero"};
  if (y == -1) return op == Operator::modulo ? 0 : checked_subtract(0, x);
  const std::int64_t remainder = x % y;
  const bool adjust = remainder != 0 && (remainder < 0) != (y < 0);
  if (op == Operator::modulo) return adjust ? remainder + y : remainder;
  return x / y - (adjust ? 1 : 0);
}

Affine exact_divide(Affine a, Affine b) {
  if (b == Affine(0)) throw Refusal{"division by zero"};
  if (b.constant < 0 || b.slope < 0) {  // the quotient of the lowest integer by -1 would trap
    a = Affine(0) - a;
    b = Affine(0) - b;
  }
  if (!divides(b, a)) {
    throw Refusal{fmt::format("{} / {} is not exact", a.to_string(), b.to_string()),
                  "'//' rounds down"};
  }
  return quotient(a, b);
}

template <typename Number>
Value compare(Operator op, Number a, Number b) {
  switch (op) {
    case Operator::equal:
      return {a == b};
    case Operator::unequal:
      return {a != b};
    case Operator::less:
      return {a < b};
    case Operator::less_equal:
      return {a <= b};
    case Operator::greater:
      return {a > b};
    default:
      return {a >= b};
  }
}

Value integers(Operator op, Affine a, Affine b) {
  switch (op) {
    case Operator::add:
      return {a + b};
    case Operator::subtract:
      return {a - b};
    case Operator::multiply:
      return {a * b};
    case Operator::divide:
      return {exact_divide(a, b)};
    case Operator::floor_divide:
    case Operator::modulo:
      return {Affine(floor_divide(op, a, b))};
    default:
      return compare(op, constant_of(op, a), constant_of(op, b));
  }
}

Value reals(Operator op, double a, double b) {
  double result = 0;
  switch (op) {
    case Operator::add:
      result = a + b;
      break;
    case Operator::subtract:
      result = a - b;
      break;
    case Operator::multiply:
      result = a * b;
      break;
    case Operator::divide:
      result = a / b;
      break;
    case Operator::floor_divide:
    case Operator::modulo:
      throw Refusal{fmt::format("'{}' takes integers", spelling(op))};
    default:
      return compare(op, a, b);
  }
  if (!std::isfinite(result)) throw Refusal{"the result is not a finite number"};
  return {result};
}

double real_of(Operator op, const Value& value) {
  if (const double* real = value.real()) return *real;
  return static_cast<double>(constant_of(op, *value.affine()));
}

bool truth_of(Operator op, const Value& value) {
  if (const bool* boolean = value.boolean()) return *boolean;
  if (const Affine* affine = value.affine()) return constant_of(op, *affine) != 0;
  throw Refusal{fmt::format("'{}' cannot take {}", spelling(op), describe(value))};
}

bool is_number(const Value& value) { return value.affine() != nullptr || value.real() != nullptr; }

Value binary(Operator op, const Value& a, const Value& b) {
  const bool equality = op == Operator::equal || op == Operator::unequal;
  if (equality && ((a.word() && b.word()) || (a.boolean() && b.boolean()))) {
    return {(a == b) == (op == Operator::equal)};
  }
  if (!is_number(a) || !is_number(b)) {
    throw Refusal{fmt::format("'{}' cannot take {}", spelling(op), describe(is_number(a) ? b : a))};
  }
  if (a.affine() && b.affine()) return integers(op, *a.affine(), *b.affine());
  return reals(op, real_of(op, a), real_of(op, b));
}

class Evaluation {
 public:
  Evaluation(const std::vector<Node>& nodes, const Environment& at) : nodes_(nodes), at_(at) {}

  Value value_of(int index) {
    const Node& node = nodes_[static_cast<std::size_t>(index)];
    switch (node.op) {
      case Operator::literal:
        return node.literal;
      case Operator::block_name:
        return at_.block[static_cast<std::size_t>(node.left)];
      case Operator::model_name:
        return at_.model[static_cast<std::size_t>(node.left)];
      case Operator::batch:
        return {batch_symbol};
      case Operator::index:
        return {Affine(at_.index)};
      default:
        return apply(node);
    }
  }

  [[nodiscard]] const Node& blamed() const { return *blamed_; }

 private:
  Value apply(const Node& node) {
    if (node.op == Operator::choose) {
      const Value condition = value_of(node.condition);
      blamed_ = &node;
      return value_of(truth_of(node.op, condition) ? node.left : node.right);
    }
    const Value left = value_of(node.left);
    blamed_ = &node;
    switch (node.op) {
      case Operator::logical_not:
        return {!truth_of(node.op, left)};
      case Operator::negate:
        return binary(Operator::subtract, {Affine(0)}, left);
      case Operator::logical_and:
        if (!truth_of(node.op, left)) return {false};
        break;
      case Operator::logical_or:
        if (truth_of(node.op, left)) return {true};
        break;
      default:
        break;
    }
    const Value right = value_of(node.right);
    blamed_ = &node;
    if (node.op == Operator::logical_and || node.op == Operator::logical_or) {
      return {truth_of(node.op, right)};
    }
    return binary(node.op, left, right);
  }

  const std::vector<Node>& nodes_;
  const Environment& at_;
  const Node* blamed_ = nullptr;
};

}  // namespace

Expression Expression::constant(Value value) {
  std::vector<Node> nodes(1);
  nodes[0].literal = std::move(value);
  return Expression(std::move(nodes));
}

bool Expression::is_constant() const {
  for (const Node& node : nodes_) {
    if (node.op == Operator::block_name || node.op == Operator::index) return false;
  }
  return true;
}

tl::expected<Value, ExpressionError> Expression::evaluate(const Environment& at) const {
  assert(!nodes_.empty());
  Evaluation evaluation(nodes_, at);
  const auto refuse = [&](std::string message, std::string hint) {
    const Node& node = evaluation.blamed();
    return tl::unexpected(
        ExpressionError{node.offset, node.length, std::move(message), std::move(hint)});
  };
  try {
    return evaluation.value_of(static_cast<int>(nodes_.size()) - 1);
  } catch (Refusal& refusal) {
    return refuse(std::move(refusal.message), std::move(refusal.hint));
  } catch (const ArithmeticOverflow&) {
    return refuse("the result leaves the 64-bit range", "");
  } catch (const NotAffine& e) {
    return refuse(e.what(), "a size may depend on the batch only linearly");
  }
}

std::string to_string(const Value& value) {
  if (const Affine* affine = value.affine()) return affine->to_string();
  if (const double* real = value.real()) return fmt::format("{}", *real);
  if (const bool* boolean = value.boolean()) return *boolean ? "true" : "false";
  if (const std::string* word = value.word()) return *word;
  std::string text = "[";
  for (const Value& item : *value.list()) {
    if (text.size() > 1) text += ", ";
    text += to_string(item);
  }
  return text + "]";
}

std::string describe(const Value& value) {
  if (value.word() != nullptr) return fmt::format("the word '{}'", to_string(value));
  if (value.list() != nullptr) return fmt::format("the list {}", to_string(value));
  if (value.boolean() != nullptr) return to_string(value);
  if (value.affine() != nullptr && !value.affine()->is_constant()) {
    return fmt::format("{}, which depends on the batch", to_string(value));
  }
  return fmt::format("the number {}", to_string(value));
}

}  // namespace stowage
