#include "estimator/model/expression.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <limits>

#include "estimator/base/bytes.hpp"

namespace stowage {

namespace {

using Operation = Expression::Operator;
using Node = Expression::Node;

// Thrown and caught within one evaluation, which keeps the arithmetic below readable.
struct Refusal {
  std::string message;
  std::string hint = {};
};

std::string_view spelling(Operation op) {
  switch (op) {
    case Operation::negate:
    case Operation::subtract:
      return "-";
    case Operation::logical_not:
      return "not";
    case Operation::add:
      return "+";
    case Operation::multiply:
      return "*";
    case Operation::divide:
      return "/";
    case Operation::floor_divide:
      return "//";
    case Operation::modulo:
      return "%";
    case Operation::equal:
      return "==";
    case Operation::unequal:
      return "!=";
    case Operation::less:
      return "<";
    case Operation::less_equal:
      return "<=";
    case Operation::greater:
      return ">";
    case Operation::greater_equal:
      return ">=";
    case Operation::logical_and:
      return "and";
    case Operation::logical_or:
      return "or";
    case Operation::choose:
      return "if";
    default:
      return "";
  }
}

std::int64_t constant_of(Operation op, Affine a) {
  if (a.is_constant()) return a.constant;
  throw Refusal{
      fmt::format("'{}' cannot take {}, which depends on the batch", spelling(op), a.to_string())};
}

// Quotient and remainder rounded towards minus infinity, as Python's.
std::int64_t floor_divide(Operation op, Affine a, Affine b) {
  const std::int64_t x = constant_of(op, a);
  const std::int64_t y = constant_of(op, b);
  if (y == 0) throw Refusal{"division by zero"};
  if (y == -1) return op == Operation::modulo ? 0 : checked_subtract(0, x);
  const std::int64_t remainder = x % y;
  const bool adjust = remainder != 0 && (remainder < 0) != (y < 0);
  if (op == Operation::modulo) return adjust ? remainder + y : remainder;
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
Value compare(Operation op, Number a, Number b) {
  switch (op) {
    case Operation::equal:
      return {a == b};
    case Operation::unequal:
      return {a != b};
    case Operation::less:
      return {a < b};
    case Operation::less_equal:
      return {a <= b};
    case Operation::greater:
      return {a > b};
    default:
      return {a >= b};
  }
}

Value integers(Operation op, Affine a, Affine b) {
  switch (op) {
    case Operation::add:
      return {a + b};
    case Operation::subtract:
      return {a - b};
    case Operation::multiply:
      return {a * b};
    case Operation::divide:
      return {exact_divide(a, b)};
    case Operation::floor_divide:
    case Operation::modulo:
      return {Affine(floor_divide(op, a, b))};
    default:
      return compare(op, constant_of(op, a), constant_of(op, b));
  }
}

Value reals(Operation op, double a, double b) {
  double result = 0;
  switch (op) {
    case Operation::add:
      result = a + b;
      break;
    case Operation::subtract:
      result = a - b;
      break;
    case Operation::multiply:
      result = a * b;
      break;
    case Operation::divide:
      result = a / b;
      break;
    case Operation::floor_divide:
    case Operation::modulo:
      throw Refusal{fmt::format("'{}' takes integers", spelling(op))};
    default:
      return compare(op, a, b);
  }
  if (!std::isfinite(result)) throw Refusal{"the result is not a finite number"};
  return {result};
}

double real_of(Operation op, const Value& value) {
  if (const double* real = value.real()) return *real;
  return static_cast<double>(constant_of(op, *value.affine()));
}

bool truth_of(Operation op, const Value& value) {
  if (const bool* boolean = value.boolean()) return *boolean;
  if (const Affine* affine = value.affine()) return constant_of(op, *affine) != 0;
  throw Refusal{fmt::format("'{}' cannot take {}", spelling(op), describe(value))};
}

bool is_number(const Value& value) { return value.affine() != nullptr || value.real() != nullptr; }

Value binary(Operation op, const Value& a, const Value& b) {
  const bool equality = op == Operation::equal || op == Operation::unequal;
  if (equality && ((a.word() && b.word()) || (a.boolean() && b.boolean()))) {
    return {(a == b) == (op == Operation::equal)};
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
      case Operation::literal:
        return node.literal;
      case Operation::block_name:
        return at_.block[static_cast<std::size_t>(node.left)];
      case Operation::model_name:
        return at_.model[static_cast<std::size_t>(node.left)];
      case Operation::batch:
        return {batch_symbol};
      case Operation::index:
        return {Affine(at_.index)};
      default:
        return apply(node);
    }
  }

  [[nodiscard]] const Node& blamed() const { return *blamed_; }

 private:
  Value apply(const Node& node) {
    if (node.op == Operation::choose) {
      const Value condition = value_of(node.condition);
      blamed_ = &node;
      return value_of(truth_of(node.op, condition) ? node.left : node.right);
    }
    const Value left = value_of(node.left);
    blamed_ = &node;
    switch (node.op) {
      case Operation::logical_not:
        return {!truth_of(node.op, left)};
      case Operation::negate:
        return binary(Operation::subtract, {Affine(0)}, left);
      case Operation::logical_and:
        if (!truth_of(node.op, left)) return {false};
        break;
      case Operation::logical_or:
        if (truth_of(node.op, left)) return {true};
        break;
      default:
        break;
    }
    const Value right = value_of(node.right);
    blamed_ = &node;
    if (node.op == Operation::logical_and || node.op == Operation::logical_or) {
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
    if (node.op == Operation::block_name || node.op == Operation::index) return false;
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
