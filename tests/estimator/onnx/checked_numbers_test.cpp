// ONNX files with axes, indices and numbers that no tensor has, and with too many of them: each is
// refused with its node, or its numbers are taken as unknown.
#include <doctest/doctest.h>

#include <limits>

#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/onnx/checked_axes.hpp"
#include "tests/estimator/onnx/onnx_text.hpp"

namespace stowage {

using testing::integer_attribute;
using testing::integers;
using testing::integers_attribute;
using testing::node;
using testing::onnx_file;
using testing::text_field;
using testing::value;

namespace {

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

const std::string untyped_output = text_field(12, text_field(1, "y"));
const std::string flat_input = value(11, "x", {"batch", "4"});
const std::string relu_of_input =
    node("Relu", {"x"}, {"y"}) + flat_input + value(12, "y", {"batch", "4"});

// The layers of a graph that is read; or the mistakes.
std::string answer_to(const std::string& graph, const std::string& functions = "") {
  const auto source =
      std::make_shared<const SourceText>(SourceText{"net.onnx", onnx_file(graph) + functions});
  const auto imported = import_model(file_head_of(source), {});
  if (!imported) return render(imported.error());
  REQUIRE(imported->has_value());
  const std::string& text = (*imported)->description->text;
  const auto begin = text.find("layers:\n") + std::string_view("layers:\n").size();
  return text.substr(begin, text.find("output:") - begin);
}

// `target`, of constants alone, becomes the shape of a Reshape of x.
std::string reshaped_by(const std::string& constants) {
  return answer_to(constants + node("Reshape", {"x", "target"}, {"y"}) + flat_input +
                   untyped_output);
}

const std::string read_relu = "  - relu: {name: Relu_y, from: x}\n";
const std::string unknown_shape =
    "net.onnx: error: node 'Reshape_y' (Reshape): its shape does not follow from sizes\n";

std::string of_node(const std::string& op, const std::string& output, const std::string& what) {
  return "net.onnx: error: node '" + op + "_" + output + "' (" + op + "): " + what + "\n";
}

// A function of the domain "d".
std::string function(const std::string& name, const std::string& nodes, const std::string& output) {
  return text_field(25, text_field(1, name) + text_field(4, "a") + text_field(5, output) + nodes +
                            text_field(10, "d"));
}
std::string in_function(std::string node) {
  node[0] = '\x3a';  // the field 7 of a function, not 1 of a graph
  return node;
}
std::string call_of(const std::string& name, const std::string& from, const std::string& to) {
  return text_field(1, from) + text_field(2, to) + text_field(4, name) + text_field(7, "d");
}

}  // namespace

TEST_CASE("a permutation names each axis once") {
  const auto transposed = [](const std::vector<std::int64_t>& shape,
                             const std::vector<std::int64_t>& perm) {
    return answer_to(node("ConstantOfShape", {"s"}, {"t"}) +
                     node("Transpose", {"t"}, {"c"}, integers_attribute("perm", perm)) +
                     integers("s", shape) + relu_of_input);
  };
  CHECK(transposed({1, 4096, 1}, {2, 0, 1}) == read_relu);
  CHECK(transposed({1, 4096, 1}, {-1, 0, 1}) == read_relu);
  CHECK(transposed({1, 4096, 1}, {2, 2, 1}) ==
        of_node("Transpose", "c", "its perm [2, 2, 1] is not a permutation of 3 axes"));
  CHECK(transposed({4, 1}, {0, 0}) ==
        of_node("Transpose", "c", "its perm [0, 0] is not a permutation of 2 axes"));
  CHECK(transposed({4, 1}, {0, 1, 2}) ==
        of_node("Transpose", "c", "its perm [0, 1, 2] is not a permutation of 2 axes"));
  CHECK(transposed({4, 1}, {lowest, highest}).find("is not a permutation of 2 axes") !=
        std::string::npos);
}

TEST_CASE("a permutation of an activation is checked too") {
  CHECK(answer_to(node("Transpose", {"x"}, {"y"}, integers_attribute("perm", {0, 0})) + flat_input +
                  untyped_output) ==
        of_node("Transpose", "y", "its perm [0, 0] is not a permutation of 2 axes"));
}

TEST_CASE("a weight of one axis that is made a matrix and transposed is read as one") {
  const std::string graph =
      node("Reshape", {"w", "shape"}, {"m"}) + node("Transpose", {"m"}, {"t"}) +
      node("Add", {"x", "t"}, {"y"}) + testing::weights("w", {24}) + integers("shape", {4, 6}) +
      value(11, "x", {"batch", "6", "4"}) + value(12, "y", {"batch", "6", "4"});
  const std::string layers = answer_to(graph);
  CHECK(layers.find("shape: [24]") != std::string::npos);
  CHECK(layers.find("shape: [4, 6]") < layers.find("transpose: {name: w_turned"));
}

TEST_CASE("numbers that do not broadcast to the result are not read") {
  const std::string long_table = integers("a", std::vector<std::int64_t>(64, 1));
  const std::string tables = long_table + integers("b", {4, 1});
  for (const std::string op : {"Clip", "CumSum", "ScatterElements", "Trilu"}) {
    CAPTURE(op);
    CHECK(reshaped_by(node(op, {"a", "b"}, {"target"}) + tables) == unknown_shape);
  }
  CHECK(reshaped_by(node("Identity", {"b", "a"}, {"target"}) + long_table + integers("b", {1})) ==
        unknown_shape);
}

TEST_CASE("negative extents make no tensor") {
  CHECK(reshaped_by(node("ConstantOfShape", {"s"}, {"t"}) + node("Add", {"t", "t"}, {"u"}) +
                    node("Cast", {"u"}, {"target"}, integer_attribute("to", 7)) +
                    integers("s", {-2, -3})) ==
        of_node("ConstantOfShape", "t", "the file does not say its output's size"));
}

TEST_CASE("slices have steps, and one range an axis") {
  const auto sliced = [](std::int64_t start, std::int64_t end,
                         const std::vector<std::int64_t>& axes,
                         const std::vector<std::int64_t>& steps) {
    return reshaped_by(node("Slice", {"table", "s", "e", "a", "t"}, {"target"}) +
                       integers("table", {7, -1, 4, 9}) +
                       integers("s", std::vector<std::int64_t>(axes.size(), start)) +
                       integers("e", std::vector<std::int64_t>(axes.size(), end)) +
                       integers("a", axes) + integers("t", steps));
  };
  CHECK(sliced(1, 3, {0}, {1}).find("error") != 0);
  CHECK(sliced(1, 3, {0}, {0}) == of_node("Slice", "target", "its step is 0"));
  CHECK(sliced(1, 3, {1}, {1}) == of_node("Slice", "target", "its axis 1 is out of range"));
  CHECK(sliced(1, 3, {lowest}, {1}) ==
        of_node("Slice", "target", "its axis -9223372036854775808 is out of range"));
  CHECK(sliced(1, 3, {0, -1}, {1, 1}) == of_node("Slice", "target", "its axis -1 stands twice"));
  CHECK(sliced(1, 3, {0}, {1, 1}) ==
        of_node("Slice", "target", "it has 1 starts, 1 ends and 2 steps"));
  for (const std::int64_t bound : {lowest, highest}) {
    for (const std::int64_t step : {lowest, std::int64_t{-1}, std::int64_t{1}, highest}) {
      CHECK_FALSE(sliced(bound, bound, {0}, {step}).empty());
      CHECK_FALSE(sliced(lowest, highest, {0}, {step}).empty());
      CHECK_FALSE(sliced(highest, lowest, {0}, {step}).empty());
    }
  }
}

TEST_CASE("indices outside of a table have no numbers") {
  for (const std::int64_t index : {std::int64_t{4}, std::int64_t{-5}, lowest, highest}) {
    CAPTURE(index);
    CHECK(reshaped_by(node("Gather", {"table", "i"}, {"target"}) +
                      integers("table", {7, -1, 4, 9}) + integers("i", {index, 0})) ==
          unknown_shape);
  }
}

TEST_CASE("parts of a Split add up") {
  const auto split = [](const std::vector<std::int64_t>& sizes) {
    return reshaped_by(node("Split", {"table", "sizes"}, {"target", "rest"}) +
                       integers("table", {-1, 4, 4, 9}) + integers("sizes", sizes));
  };
  CHECK(split({2, 2}).find("error") == std::string::npos);
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {highest, highest}, {-1, 5}, {2, 3}, {lowest, 2}, {4, highest}}) {
    CAPTURE(sizes[0]);
    CHECK(split(sizes) == of_node("Split", "target", "its parts do not add up to 4"));
  }
}

TEST_CASE("a range of any bounds ends") {
  const auto range = [](std::int64_t first, std::int64_t last, std::int64_t step) {
    return reshaped_by(node("Range", {"f", "l", "s"}, {"r"}) + node("Neg", {"r"}, {"target"}) +
                       integers("f", {first}) + integers("l", {last}) + integers("s", {step}));
  };
  for (const std::int64_t first : {lowest, std::int64_t{0}, highest}) {
    for (const std::int64_t last : {lowest, std::int64_t{0}, highest}) {
      for (const std::int64_t step : {lowest, std::int64_t{-1}, std::int64_t{0}, highest}) {
        CHECK_FALSE(range(first, last, step).empty());
      }
    }
  }
}

TEST_CASE("a quotient that leaves the 64-bit range names its node") {
  const std::string overflow = of_node("Div", "q", "a size leaves the 64-bit range");
  CHECK(answer_to(node("Div", {"a", "b"}, {"q"}) + integers("a", {lowest}) + integers("b", {-1}) +
                  relu_of_input) == overflow);
  const std::string by_batch = node("Shape", {"x"}, {"s"}) + node("Gather", {"s", "i"}, {"b"}) +
                               node("Mul", {"b", "m"}, {"p"}) + node("Div", {"p", "n"}, {"q"}) +
                               integers("i", {0});
  CHECK(answer_to(by_batch + integers("m", {lowest}) + integers("n", {-1}) + relu_of_input) ==
        overflow);
  CHECK(answer_to(by_batch + integers("m", {lowest}) + integers("n", {0}) + relu_of_input) ==
        read_relu);
  CHECK(answer_to(node("Mod", {"a", "b"}, {"q"}) + integers("a", {lowest}) + integers("b", {-1}) +
                  relu_of_input) == read_relu);
}

TEST_CASE("folding computes a bounded count of numbers") {
  FoldingBudget budget;
  CHECK(budget.take(most_folded_numbers - 1));
  CHECK_FALSE(budget.take(2));
  CHECK_FALSE(budget.take(1));
  CHECK(budget.take(0));
  std::string graph = node("ConstantOfShape", {"s"}, {"t"}) + integers("s", {4096});
  for (int i = 0; i < 1200; ++i) graph += node("Add", {"t", "t"}, {"sum"});
  CHECK(answer_to(graph + relu_of_input) == read_relu);
  CHECK(reshaped_by(graph + node("Add", {"four", "one"}, {"target"}) + integers("four", {-1, 3}) +
                    integers("one", {0, 1})) == unknown_shape);
}

TEST_CASE("calls of functions are written out up to a bound") {
  const std::string numbers = integers_attribute("numbers", std::vector<std::int64_t>(4000, 7));
  const std::string big = function("big", in_function(node("Relu", {"a"}, {"b"}, numbers)), "b");
  const auto calls = [](const std::string& name, const std::string& last, int count) {
    std::string nodes = text_field(1, call_of(name, "x", "y1"));
    for (int i = 1; i < count; ++i) {
      const std::string from = "y" + std::to_string(i);
      const std::string to = i + 1 == count ? last : "y" + std::to_string(i + 1);
      nodes += text_field(1, call_of(name, from, to));
    }
    return nodes;
  };
  const std::string shapes = flat_input + value(12, "y", {"batch", "4"});
  CHECK(answer_to(calls("big", "y", 2) + shapes, big) ==
        "  - relu: {name: Relu_b, from: x}\n"
        "  - relu: {name: Relu_b_2, from: Relu_b}\n");
  const std::string refused = answer_to(calls("big", "y", 600) + shapes, big);
  CHECK(refused.find("its functions, written out, have more than 2000000 names and numbers") !=
        std::string::npos);
  // Each level calls the one below it twice.
  std::string doubling = function("f0", in_function(node("Relu", {"a"}, {"b"})), "b");
  for (int i = 1; i < 30; ++i) {
    const std::string below = "f" + std::to_string(i - 1);
    doubling += function(
        "f" + std::to_string(i),
        text_field(7, call_of(below, "a", "m")) + text_field(7, call_of(below, "m", "b")), "b");
  }
  CHECK(answer_to(text_field(1, call_of("f29", "x", "y")) + shapes, doubling).find("error: byte") !=
        std::string::npos);
}

}  // namespace stowage
