#include "estimator/model/expression.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

namespace stowage {

namespace {

const std::vector<std::string> block_names = {"stride", "kernel", "word", "rate"};
const std::vector<Value> block_values = {
    {Affine(2)}, {std::vector<Value>{{Affine(1)}, {Affine(7)}}}, {std::string("same")}, {0.5}};
const std::vector<std::string> model_names_ = {"hidden", "stride"};
const std::vector<Value> model_values = {{Affine(768)}, {Affine(99)}};

// The value as text, or "offset: message (hint)".
std::string value_of(const std::string& text) {
  const auto complain = [](const ExpressionError& error) {
    return fmt::format("{}: {}{}", error.offset, error.message,
                       error.hint.empty() ? "" : " (" + error.hint + ")");
  };
  const auto expression = parse_expression(text, {.block = block_names, .model = model_names_});
  if (!expression) return complain(expression.error());
  const auto value = expression->evaluate({block_values, model_values, 3});
  return value ? to_string(*value) : complain(value.error());
}

}  // namespace

TEST_CASE("integers, precedence and rounding") {
  CHECK(value_of("2 + 3 * 4") == "14");
  CHECK(value_of("(2 + 3) * 4") == "20");
  CHECK(value_of("20 - 3 - 4") == "13");
  CHECK(value_of("-2 * -3 - -1") == "7");
  CHECK(value_of("12 / 3 / 2") == "2");
  CHECK(value_of("7 // 2") == "3");
  CHECK(value_of("-7 // 2") == "-4");
  CHECK(value_of("-7 % 3") == "2");
  CHECK(value_of("7 % -3") == "-2");
  CHECK(value_of("9223372036854775807") == "9223372036854775807");
}

TEST_CASE("conditions") {
  CHECK(value_of("1 < 2 and 2 <= 2 and 3 > 2 and 2 >= 2") == "true");
  CHECK(value_of("not 1 == 2") == "true");
  CHECK(value_of("1 != 1 or 0") == "false");
  CHECK(value_of("not not 5") == "true");
  CHECK(value_of("true and not false") == "true");
  CHECK(value_of("index > 0 and 6 / index == 2") == "true");
  CHECK(value_of("index == 3 or 1 / 0 == 1") == "true");
  CHECK(value_of("2 if index == 3 else 1 / 0") == "2");
  CHECK(value_of("1 if false else 2 if false else 3") == "3");
  CHECK(value_of("word == word and word != word") == "false");
}

TEST_CASE("names: a block's arguments hide the model's") {
  CHECK(value_of("stride") == "2");
  CHECK(value_of("4*hidden") == "3072");
  CHECK(value_of("kernel") == "[1, 7]");
  CHECK(value_of("word") == "same");
  CHECK(value_of("rate / 2") == "0.25");
  CHECK(value_of("1e-3 + 1") == "1.001");
  CHECK(value_of("index") == "3");
}

TEST_CASE("the batch stays a symbol") {
  CHECK(value_of("batch") == "batch");
  CHECK(value_of("2 * batch * hidden - 1") == "1536*batch-1");
  CHECK(value_of("hidden * batch / 3") == "256*batch");
  CHECK(value_of("6 * batch / (2 * batch)") == "3");
  CHECK(value_of("batch * batch") ==
        "6: batch times batch is not affine in the batch (a size may depend on the batch only "
        "linearly)");
  CHECK(value_of("batch // 2") == "6: '//' cannot take batch, which depends on the batch");
  CHECK(value_of("batch == 1") == "6: '==' cannot take batch, which depends on the batch");
  CHECK(value_of("not batch") == "0: 'not' cannot take batch, which depends on the batch");
}

TEST_CASE("what is not an expression says where and why") {
  CHECK(value_of("") == "0: expected a number or a name");
  CHECK(value_of("2 +") == "3: expected a number or a name, found the end");
  CHECK(value_of("2 3") == "2: expected an operator or the end, found '3'");
  CHECK(value_of("(2 * (3 + 4)") == "0: no ')' for this '('");
  CHECK(value_of("stride = 2") == "7: expected an operator or the end, found '=' ('==' compares)");
  CHECK(value_of("strde != 1") == "0: unknown name 'strde' (did you mean 'stride'?)");
  CHECK(value_of("2 if index") ==
        "2: expected 'else' after 'a if b' (such as '2 if index == 0 else 1')");
  CHECK(value_of("1 < 2 < 3") == "6: expected an operator or the end, found '<'");
  CHECK(value_of("007") == "0: '007' starts with 0, which some readers take for octal (write 7)");
  CHECK(value_of("0") == "0");
  CHECK(value_of("00") == "0: '00' starts with 0, which some readers take for octal (write 0)");
  CHECK(value_of("1.5.2") == "0: '1.5.2' is not a number");
  CHECK(value_of("1e999") == "0: '1e999' is not a number");
  CHECK(value_of(std::string(100, '(')) == "64: nested deeper than 64 levels");
  CHECK(value_of(std::string(100, '-') + "1") == "64: nested deeper than 64 levels");
  CHECK(value_of(std::string(2000, '1')) == "0: an expression of more than 1000 characters");
}

TEST_CASE("what has no value says where and why") {
  CHECK(value_of("1 + 7 / 2") == "6: 7 / 2 is not exact ('//' rounds down)");
  CHECK(value_of("hidden % 0") == "7: division by zero");
  CHECK(value_of("1.5 // 2") == "4: '//' takes integers");
  CHECK(value_of("0.5 / 0") == "4: the result is not a finite number");
  CHECK(value_of("kernel + 1") == "7: '+' cannot take the list [1, 7]");
  CHECK(value_of("1 if word else 2") == "2: 'if' cannot take the word 'same'");
  CHECK(value_of("9223372036854775807 + 1") == "20: the result leaves the 64-bit range");
  CHECK(value_of("(-9223372036854775807 - 1) / -1") == "27: the result leaves the 64-bit range");
  CHECK(value_of("(-9223372036854775807 - 1) // -1") == "27: the result leaves the 64-bit range");
  CHECK(value_of("(-9223372036854775807 - 1) % -1") == "0");
}

TEST_CASE("names as the language has them") {
  CHECK(is_symbol_name("a_1"));
  CHECK_FALSE(is_symbol_name("a-1"));
  CHECK(is_layer_name("a-1"));
  for (const char* text : {"", "1a", "a.b", "a b", "-a", "\xc3\xa9"})
    CHECK_FALSE(is_layer_name(text));
  CHECK(is_layer_name(std::string(longest_name, 'a')));
  CHECK_FALSE(is_layer_name(std::string(longest_name + 1, 'a')));
  CHECK(layer_name_hint(std::string(longest_name + 1, 'a')) == "a name has at most 256 characters");
}

}  // namespace stowage
