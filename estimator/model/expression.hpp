// Expression: what may stand wherever a description expects a number.
//
//   4 * hidden      (size - 1) // 2      stride != 1 or index == 0      batch * seq
//
// Lowest to highest: a if b else c, or, and, not, comparisons (== != < <= > >=, one at a time), +
// -, * / // %, unary -. Integers are 64 bits and checked; `/` of integers is exact or an error,
// `//` and `%` round towards minus infinity. `batch` stays a symbol: it may be added, and
// multiplied and divided by what does not depend on it, but not compared. Names are resolved when
// the text is read, so that evaluation is array look-ups and a misspelt name is found in a block
// that nobody uses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "estimator/base/affine.hpp"

namespace stowage {

/// What an argument can be bound to. An integer is an Affine that is constant.
struct Value {
  std::variant<Affine, double, bool, std::string, std::vector<Value>> of = Affine(0);
  bool operator==(const Value&) const = default;

  [[nodiscard]] const Affine* affine() const { return std::get_if<Affine>(&of); }
  [[nodiscard]] const double* real() const { return std::get_if<double>(&of); }
  [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&of); }
  [[nodiscard]] const std::string* word() const { return std::get_if<std::string>(&of); }
  [[nodiscard]] const std::vector<Value>* list() const {
    return std::get_if<std::vector<Value>>(&of);
  }
};

[[nodiscard]] std::string to_string(const Value& value);
/// With its kind, for messages: "the number 3", "the word 'same'", "the list [3, 3]", "true".
[[nodiscard]] std::string describe(const Value& value);

/// A mistake within a text: `offset` and `length` in bytes.
struct ExpressionError {
  int offset = 0;
  int length = 1;
  std::string message;
  std::string hint = {};
};

/// The names that an expression may use, in the order of the values at evaluation.
struct ExpressionNames {
  std::span<const std::string> block = {};  ///< the block's arguments; they hide the model's
  std::span<const std::string> model = {};  ///< the model's arguments and symbols
  bool has_batch = true;
  bool has_index = true;
};

struct Environment {
  std::span<const Value> block = {};
  std::span<const Value> model = {};
  std::int64_t index = 0;  ///< of the innermost repetition
};

class Expression {
 public:
  enum class Operator {
    literal,
    block_name,
    model_name,
    batch,
    index,  // leaves
    negate,
    logical_not,  // one operand
    add,
    subtract,
    multiply,
    divide,
    floor_divide,
    modulo,  // two
    equal,
    unequal,
    less,
    less_equal,
    greater,
    greater_equal,
    logical_and,
    logical_or,
    choose,  // three: left if condition else right
  };
  struct Node {
    Operator op = Operator::literal;
    int left = -1, right = -1,
        condition = -1;  ///< operands, indices of nodes; a name's number is `left`
    int offset = 0, length = 1;
    Value literal = {};
  };

  Expression() = default;
  explicit Expression(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}
  [[nodiscard]] static Expression constant(Value value);

  [[nodiscard]] tl::expected<Value, ExpressionError> evaluate(const Environment& at) const;
  /// Uses neither a block's argument nor the index: its value is the same in the whole model.
  [[nodiscard]] bool is_constant() const;

 private:
  std::vector<Node> nodes_;  ///< the last is the root
};

[[nodiscard]] tl::expected<Expression, ExpressionError> parse_expression(
    std::string_view text, const ExpressionNames& names);

/// In characters. A short file can ask for a name many times: each repetition of a layer has a
/// copy.
inline constexpr std::size_t longest_name = 256;

/// True of a name as the language has them: a letter or '_', then letters, digits, '_' and '-'
/// ('-' not in arguments and symbols, where it would be a subtraction).
[[nodiscard]] bool is_layer_name(std::string_view text);
[[nodiscard]] bool is_symbol_name(std::string_view text);
/// The rule that a text breaks which is no layer's name, as a hint for the user.
[[nodiscard]] std::string layer_name_hint(std::string_view text);

}  // namespace stowage
