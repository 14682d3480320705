// Weights in Constant nodes are parameters, as those in initialisers are.
#include <doctest/doctest.h>

#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"
#include "tests/estimator/onnx/onnx_text.hpp"

namespace stowage {

using testing::integer_attribute;
using testing::integers;
using testing::node;
using testing::number_field;
using testing::onnx_file;
using testing::text_field;
using testing::value;

namespace {

// A Constant node with floating-point numbers; none: they are not in the file.
std::string constant(const std::string& name, const std::vector<std::int64_t>& dims,
                     const std::vector<float>& numbers = {}) {
  std::string tensor;
  for (const std::int64_t extent : dims) {
    tensor += number_field(1, static_cast<std::uint64_t>(extent));
  }
  tensor += number_field(2, 1);
  const auto* bytes = reinterpret_cast<const char*>(numbers.data());
  if (!numbers.empty()) {
    tensor += text_field(9, std::string(bytes, numbers.size() * sizeof(float)));
  }
  return node("Constant", {}, {name},
              text_field(5, text_field(1, "value") + text_field(5, tensor) + number_field(20, 4)));
}

struct ReadGraph {
  std::int64_t parameters = 0;
  std::string layers;  ///< or the mistakes
};

ReadGraph read_graph_by(const std::string& producer, const std::string& graph) {
  const auto source =
      std::make_shared<const SourceText>(SourceText{"net.onnx", onnx_file(graph, 12, producer)});
  const auto imported = import_model(file_head_of(source), {});
  if (!imported) return {-1, render(imported.error())};
  REQUIRE(imported->has_value());
  const std::string& text = (*imported)->description->text;
  const auto model = load_model((*imported)->description);
  if (!model) return {-1, render(model.error())};
  const auto begin = text.find("layers:\n") + std::string_view("layers:\n").size();
  return {parameter_count(*model), text.substr(begin, text.find("output:") - begin)};
}

const std::string vector_input = value(11, "x", {"batch", "16"});
const std::string image_input = value(11, "x", {"batch", "16", "32", "32"});

}  // namespace

TEST_CASE("a Gemm's Constant weight and bias are its parameters") {
  const ReadGraph read = read_graph_by("test", constant("w", {16, 8}) + constant("b", {8}) +
                                                   node("Gemm", {"x", "w", "b"}, {"y"}) +
                                                   vector_input + value(12, "y", {"batch", "8"}));
  CHECK(read.parameters == 136);
  CHECK(read.layers ==
        "  - linear: {name: w, from: x, features: 8, bias: true, parameter_names: {weight: w, "
        "bias: b}}\n");
}

TEST_CASE("a convolution's Constant weight and bias are its parameters, in files of PyTorch too") {
  const std::string graph = constant("w", {8, 16, 3, 3}) + constant("b", {8}) +
                            node("Conv", {"x", "w", "b"}, {"y"}) + image_input +
                            value(12, "y", {"batch", "8", "30", "30"});
  for (const std::string producer : {"test", "pytorch"}) {
    const ReadGraph read = read_graph_by(producer, graph);
    CAPTURE(read.layers);
    CHECK(read.parameters == 8 * 16 * 9 + 8);
  }
}

TEST_CASE("Constant weights are parameters through views and as a product's bias") {
  const std::string graph = constant("w", {8, 16}) + node("Transpose", {"w"}, {"t"}) +
                            constant("b", {8}) + node("MatMul", {"x", "t"}, {"p"}) +
                            node("Add", {"p", "b"}, {"y"}) + vector_input +
                            value(12, "y", {"batch", "8"});
  for (const std::string producer : {"test", "pytorch"}) {
    const ReadGraph read = read_graph_by(producer, graph);
    CAPTURE(read.layers);
    CHECK(read.parameters == 136);
  }
}

TEST_CASE("a Constant bias that is reshaped for a convolution's sum is a parameter") {
  const ReadGraph read = read_graph_by(
      "PaddlePaddle", constant("w", {8, 16, 1, 1}) + constant("b", {8}) +
                          integers("shape", {1, 8, 1, 1}) + node("Conv", {"x", "w"}, {"c"}) +
                          node("Reshape", {"b", "shape"}, {"r"}) + node("Add", {"c", "r"}, {"y"}) +
                          image_input + value(12, "y", {"batch", "8", "32", "32"}));
  CAPTURE(read.layers);
  CHECK(read.parameters == 136);
}

TEST_CASE("numbers of arithmetic and a norm's fillers stay constants") {
  const ReadGraph scaled = read_graph_by(
      "test", constant("half", {}, {0.5F}) + constant("one", {1}, {1}) +
                  node("Mul", {"x", "half"}, {"m"}) + node("Add", {"m", "one"}, {"y"}) +
                  vector_input + value(12, "y", {"batch", "16"}));
  CHECK(scaled.parameters == 0);
  const std::vector<float> ones(16, 1);
  const std::vector<float> zeros(16, 0);
  const std::string norm = node("InstanceNormalization", {"x", "one", "zero"}, {"y"}) +
                           image_input + value(12, "y", {"batch", "16", "32", "32"});
  CHECK(read_graph_by("test", constant("one", {16}, ones) + constant("zero", {16}, zeros) + norm)
            .parameters == 0);
  const std::string unread = constant("one", {16}) + constant("zero", {16}) + norm;
  CHECK(read_graph_by("pytorch", unread).parameters == 0);
  CHECK(read_graph_by("test", unread).parameters == 32);
}

TEST_CASE("a vector of sizes times factors stays a constant") {
  const ReadGraph read = read_graph_by(
      "test", node("Shape", {"x"}, {"s"}) + node("Cast", {"s"}, {"r"}, integer_attribute("to", 1)) +
                  constant("f", {4}, {1, 1, 2, 2}) + node("Mul", {"r", "f"}, {"m"}) +
                  node("Relu", {"x"}, {"y"}) + image_input +
                  value(12, "y", {"batch", "16", "32", "32"}));
  CHECK(read.layers == "  - relu: {name: Relu_y, from: x}\n");
}

}  // namespace stowage
