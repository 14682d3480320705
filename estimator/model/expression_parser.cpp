// Recursive descent, one function a level of precedence.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/expression.hpp"

namespace stowage {

namespace {

using Operation = Expression::Operator;

constexpr int deepest_expression = 64;
constexpr std::size_t longest_expression = 1000;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Spelling {
  std::string_view text;
  Operation op;
};

// Longer spellings first.
constexpr Spelling comparisons[] = {{"==", Operation::equal},      {"!=", Operation::unequal},
                                    {"<=", Operation::less_equal}, {">=", Operation::greater_equal},
                                    {"<", Operation::less},        {">", Operation::greater}};
constexpr Spelling sums[] = {{"+", Operation::add}, {"-", Operation::subtract}};
constexpr Spelling products[] = {{"*", Operation::multiply},
                                 {"//", Operation::floor_divide},
                                 {"/", Operation::divide},
                                 {"%", Operation::modulo}};
constexpr Spelling conjunction[] = {{"and", Operation::logical_and}};
constexpr Spelling disjunction[] = {{"or", Operation::logical_or}};

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const ExpressionNames& names)
      : text_(text), names_(names) {}

  tl::expected<Expression, ExpressionError> parse() {
    if (text_.size() > longest_expression) fail(0, 1, "an expression of more than 1000 characters");
    if (!failed_) parse_choice();
    skip_spaces();
    if (!failed_ && at_ < text_.size()) {
      fail(at_, 1, fmt::format("expected an operator or the end, found '{}'", character()),
           text_[at_] == '=' ? "'==' compares" : "");
    }
    if (failed_) return tl::unexpected(std::move(error_));
    return Expression(std::move(nodes_));
  }

 private:
  int parse_choice() {
    const int chosen = parse_or();
    const std::size_t begin = skip_spaces();
    if (failed_ || !take_word("if") || !enter(begin)) return chosen;
    const int condition = parse_or();
    skip_spaces();
    if (!failed_ && !take_word("else")) {
      return fail(begin, 2, "expected 'else' after 'a if b'", "such as '2 if index == 0 else 1'");
    }
    const int otherwise = parse_choice();
    --depth_;
    return add({.op = Operation::choose,
                .left = chosen,
                .right = otherwise,
                .condition = condition,
                .offset = static_cast<int>(begin),
                .length = 2});
  }
  int parse_or() {
    return parse_left_associative(disjunction, [this] { return parse_and(); });
  }
  int parse_and() {
    return parse_left_associative(conjunction, [this] { return parse_not(); });
  }
  int parse_not() {
    const std::size_t begin = skip_spaces();
    if (!take_word("not")) return parse_comparison();
    if (!enter(begin)) return -1;
    const int operand = parse_not();
    --depth_;
    return add({.op = Operation::logical_not,
                .left = operand,
                .offset = static_cast<int>(begin),
                .length = 3});
  }
  int parse_comparison() {
    const int left = parse_sum();
    const std::size_t begin = skip_spaces();
    const Spelling* found = failed_ ? nullptr : take(comparisons);
    if (found == nullptr) return left;
    const int right = parse_sum();
    return add({.op = found->op,
                .left = left,
                .right = right,
                .offset = static_cast<int>(begin),
                .length = static_cast<int>(found->text.size())});
  }
  int parse_sum() {
    return parse_left_associative(sums, [this] { return parse_product(); });
  }
  int parse_product() {
    return parse_left_associative(products, [this] { return parse_unary(); });
  }
  int parse_unary() {
    const std::size_t begin = skip_spaces();
    if (!failed_ && begin < text_.size() && text_[begin] == '-') {
      ++at_;
      if (!enter(begin)) return -1;
      const int operand = parse_unary();
      --depth_;
      return add({.op = Operation::negate, .left = operand, .offset = static_cast<int>(begin)});
    }
    return parse_leaf();
  }

  template <typename Next>
  int parse_left_associative(std::span<const Spelling> spellings, Next next) {
    int left = next();
    while (!failed_) {
      const std::size_t begin = skip_spaces();
      const Spelling* found = take(spellings);
      if (found == nullptr) break;
      const int right = next();
      left = add({.op = found->op,
                  .left = left,
                  .right = right,
                  .offset = static_cast<int>(begin),
                  .length = static_cast<int>(found->text.size())});
    }
    return left;
  }

  int parse_leaf() {
    const std::size_t begin = skip_spaces();
    if (failed_) return -1;
    if (begin >= text_.size()) {
      return fail(begin, 1,
                  text_.empty() ? "expected a number or a name"
                                : "expected a number or a name, found the end");
    }
    if (text_[begin] == '(') return parse_parenthesis();
    if (is_digit(text_[begin]) || text_[begin] == '.') return parse_number();
    if (is_letter(text_[begin])) return parse_name();
    return fail(begin, 1, fmt::format("expected a number or a name, found '{}'", character()));
  }

  int parse_parenthesis() {
    const std::size_t begin = at_++;
    if (!enter(begin)) return -1;
    const int inner = parse_choice();
    --depth_;
    skip_spaces();
    if (failed_) return -1;
    if (at_ >= text_.size() || text_[at_] != ')') {
      return fail(begin, 1, "no ')' for this '('");
    }
    ++at_;
    return inner;
  }

  int parse_number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) ||
                                  text_[at_] == '.' || is_exponent_sign())) {
      ++at_;
    }
    const std::string_view digits = text_.substr(begin, at_ - begin);
    const int length = static_cast<int>(digits.size());
    const bool whole = std::all_of(digits.begin(), digits.end(), is_digit);
    if (whole && digits.size() > 1 && digits[0] == '0') {
      const std::size_t significant = std::min(digits.find_first_not_of('0'), digits.size() - 1);
      return fail(begin, length,
                  fmt::format("'{}' starts with 0, which some readers take for octal", digits),
                  fmt::format("write {}", digits.substr(significant)));
    }
    if (whole) {
      std::int64_t number = 0;
      const auto [end, code] = std::from_chars(digits.begin(), digits.end(), number);
      if (code != std::errc()) return fail(begin, length, "a number beyond 64 bits");
      return add_leaf(begin, length, Value{Affine(number)});
    }
    double number = 0;
    const auto [end, code] = std::from_chars(digits.begin(), digits.end(), number);
    if (code != std::errc() || end != digits.end() || !std::isfinite(number)) {
      return fail(begin, length, fmt::format("'{}' is not a number", digits));
    }
    return add_leaf(begin, length, Value{number});
  }

  bool is_exponent_sign() const {
    const char before = text_[at_ - 1];
    return (text_[at_] == '-' || text_[at_] == '+') && (before == 'e' || before == 'E') &&
           at_ + 1 < text_.size() && is_digit(text_[at_ + 1]);
  }

  int parse_name() {
    const std::size_t begin = at_;
    const std::string_view name = take_name();
    const int length = static_cast<int>(name.size());
    if (name == "true" || name == "false") return add_leaf(begin, length, Value{name == "true"});
    const auto found = [&](Operation op, std::size_t number) {
      return add({.op = op,
                  .left = static_cast<int>(number),
                  .offset = static_cast<int>(begin),
                  .length = length});
    };
    for (std::size_t i = 0; i < names_.block.size(); ++i) {
      if (names_.block[i] == name) return found(Operation::block_name, i);
    }
    for (std::size_t i = 0; i < names_.model.size(); ++i) {
      if (names_.model[i] == name) return found(Operation::model_name, i);
    }
    if (name == "batch" && names_.has_batch) return found(Operation::batch, 0);
    if (name == "index" && names_.has_index) return found(Operation::index, 0);
    return fail(begin, length, fmt::format("unknown name '{}'", name), suggest(name));
  }

  std::string suggest(std::string_view name) const {
    std::vector<std::string_view> candidates(names_.block.begin(), names_.block.end());
    candidates.insert(candidates.end(), names_.model.begin(), names_.model.end());
    for (const std::string_view word : {"batch", "index", "true", "false"}) {
      candidates.push_back(word);
    }
    return did_you_mean(name, candidates);
  }

  std::size_t skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_;
  }

  std::string_view take_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  bool take_word(std::string_view word) {
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(word)) return false;
    if (rest.size() > word.size() && (is_letter(rest[word.size()]) || is_digit(rest[word.size()])))
      return false;
    at_ += word.size();
    return true;
  }

  const Spelling* take(std::span<const Spelling> spellings) {
    for (const Spelling& spelling : spellings) {
      if (is_letter(spelling.text[0])) {
        if (take_word(spelling.text)) return &spelling;
        continue;
      }
      if (!text_.substr(at_).starts_with(spelling.text)) continue;
      // "*" must not take the first half of a "**" that would then read as a missing operand.
      at_ += spelling.text.size();
      return &spelling;
    }
    return nullptr;
  }

  std::string_view character() const { return text_.substr(at_, 1); }

  bool enter(std::size_t begin) {
    if (++depth_ <= deepest_expression) return true;
    fail(begin, 1, fmt::format("nested deeper than {} levels", deepest_expression));
    return false;
  }

  int add_leaf(std::size_t begin, int length, Value value) {
    return add({.offset = static_cast<int>(begin), .length = length, .literal = std::move(value)});
  }

  int add(Expression::Node node) {
    if (failed_) return -1;
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }

  int fail(std::size_t offset, int length, std::string message, std::string hint = {}) {
    if (!failed_) {
      error_ = {static_cast<int>(offset), length, std::move(message), std::move(hint)};
    }
    failed_ = true;
    return -1;
  }

  std::string_view text_;
  const ExpressionNames& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
  ExpressionError error_;
  std::vector<Expression::Node> nodes_;
};

}  // namespace

tl::expected<Expression, ExpressionError> parse_expression(std::string_view text,
                                                           const ExpressionNames& names) {
  return ExpressionParser(text, names).parse();
}

bool is_symbol_name(std::string_view text) {
  return !text.empty() && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

bool is_layer_name(std::string_view text) {
  if (text.size() > longest_name) return false;
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '-';
  });
}

std::string layer_name_hint(std::string_view text) {
  if (text.size() > longest_name) {
    return fmt::format("a name has at most {} characters", longest_name);
  }
  return "a name has letters, digits, '_' and '-', and starts with a letter";
}

}  // namespace stowage
