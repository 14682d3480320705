// ONNX files become descriptions, and what is wrong with one is said.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"
#include "tests/estimator/onnx/onnx_text.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using testing::integer_attribute;
using testing::integers;
using testing::integers_attribute;
using testing::node;
using testing::onnx_file;
using testing::real;
using testing::value;
using testing::weights;

namespace {

SourceTextPtr onnx_source(const std::string& bytes) {
  return std::make_shared<const SourceText>(SourceText{"net.onnx", bytes});
}

// The layers of the description, or the mistakes.
std::string layers_of_onnx(const std::string& bytes, const ImportOptions& options = {}) {
  const auto imported = import_model(file_head_of(onnx_source(bytes)), options);
  if (!imported) return render(imported.error());
  REQUIRE(imported->has_value());
  const std::string text = (*imported)->description->text;
  const auto model = load_model((*imported)->description);
  CAPTURE(text);
  if (!model) return render(model.error());
  const auto begin = text.find("layers:\n") + std::string_view("layers:\n").size();
  return text.substr(begin, text.find("output:") - begin);
}

const std::string image = value(11, "x", {"N", "3", "8", "8"});

}  // namespace

TEST_CASE("a convolution has the file's names, and unread weights") {
  const std::string graph = node("Conv", {"x", "stem.weight", "stem.bias"}, {"y"},
                                 integers_attribute("pads", {1, 1, 1, 1})) +
                            node("Relu", {"y"}, {"z"}) + weights("stem.weight", {16, 3, 3, 3}) +
                            weights("stem.bias", {16}) + image +
                            value(12, "z", {"N", "16", "8", "8"});
  CHECK(layers_of_onnx(onnx_file(graph)) ==
        "  - conv2d: {name: stem, from: x, channels: 16, kernel: [3, 3], stride: [1, 1], "
        "padding: [1, 1], dilation: [1, 1], groups: 1, bias: true, parameter_names: {weight: "
        "stem.weight, bias: stem.bias}}\n"
        "  - relu: {name: Relu_z, from: stem}\n");
}

TEST_CASE("computed shapes are folded with the batch as a symbol") {
  const std::string graph =
      node("Shape", {"x"}, {"shape"}) + node("Gather", {"shape", "zero"}, {"n"}) +
      node("Concat", {"n", "rest"}, {"target"}, integer_attribute("axis", 0)) +
      node("Reshape", {"x", "target"}, {"flat"}) +
      node("Gemm", {"flat", "w"}, {"y"}, integer_attribute("transB", 1)) + integers("zero", {0}) +
      integers("rest", {-1}) + weights("w", {5, 192}) + image + value(12, "y", {"N", "5"});
  CHECK(layers_of_onnx(onnx_file(graph)) ==
        "  - reshape: {name: Reshape_flat, from: x, shape: [batch, 192]}\n"
        "  - linear: {name: w, from: Reshape_flat, features: 5, bias: false, parameter_names: "
        "{weight: w}}\n");
}

TEST_CASE("a fixed first dimension is the batch, also in written shapes") {
  const std::string graph = node("Reshape", {"x", "target"}, {"y"}) +
                            node("Softmax", {"y"}, {"z"}) + integers("target", {2, 192}) +
                            value(11, "x", {"2", "3", "8", "8"}) + value(12, "z", {"2", "192"});
  CHECK(layers_of_onnx(onnx_file(graph)) ==
        "  - reshape: {name: Reshape_y, from: x, shape: [batch, 192]}\n"
        "  - softmax: {name: Softmax_z, from: Reshape_y, axis: -1}\n");
}

TEST_CASE("single operators are found to be a gelu, a norm and a linear layer") {
  const std::string graph =
      node("ReduceMean", {"x"}, {"m"}, integers_attribute("axes", {-1})) +
      node("Sub", {"x", "m"}, {"d"}) + node("Pow", {"d", "two"}, {"s"}) +
      node("ReduceMean", {"s"}, {"v"}, integers_attribute("axes", {-1})) +
      node("Add", {"v", "eps"}, {"e"}) + node("Sqrt", {"e"}, {"r"}) +
      node("Div", {"d", "r"}, {"q"}) + node("Mul", {"q", "norm.weight"}, {"g"}) +
      node("Add", {"g", "norm.bias"}, {"n"}) + node("MatMul", {"n", "w"}, {"p"}) +
      node("Add", {"b", "p"}, {"l"}) + node("Div", {"l", "root"}, {"i"}) +
      node("Erf", {"i"}, {"f"}) + node("Add", {"f", "one"}, {"o"}) +
      node("Mul", {"l", "o"}, {"t"}) + node("Mul", {"t", "half"}, {"y"}) + real("two", 2) +
      real("eps", 0.5) + real("root", 1.4142135F) + real("one", 1) + real("half", 0.5) +
      weights("norm.weight", {6}) + weights("norm.bias", {6}) + weights("w", {6, 8}) +
      weights("b", {8}) + value(11, "x", {"batch", "4", "6"}) + value(12, "y", {"batch", "4", "8"});
  CHECK(layers_of_onnx(onnx_file(graph)) ==
        "  - layer_norm: {name: Add_n, from: x, axes: 1, eps: 0.5, parameter_names: {weight: "
        "norm.weight, bias: norm.bias}}\n"
        "  - linear: {name: w_2, from: Add_n, features: 8, bias: true, parameter_names: {weight: "
        "w, bias: b}}\n"
        "  - gelu: {name: Mul_y, from: w_2}\n");
}

TEST_CASE("the first Concat of a growing list is restored, in files of PyTorch") {
  const std::string joints = integer_attribute("axis", 1);
  const auto layers = [&](const std::string& graph, const std::string& producer) {
    return layers_of_onnx(
        onnx_file(graph + image + value(12, "y", {"N", "9", "8", "8"}), 20, producer));
  };
  const std::string first =
      node("Tanh", {"x"}, {"a"}) + node("Concat", {"x", "a"}, {"two"}, joints);
  const std::string last = node("Concat", {"x", "a", "b"}, {"y"}, joints);
  const std::string grown = first + node("Slice", {"two", "zero", "three", "one"}, {"part"}) +
                            node("Tanh", {"part"}, {"b"}) + last + integers("zero", {0}) +
                            integers("three", {3}) + integers("one", {1});
  CHECK(layers(grown, "pytorch").find("concat") < layers(grown, "pytorch").find("tanh"));
  CHECK(layers(grown, "test").find("tanh") < layers(grown, "test").find("concat"));
  const std::string apart =
      first + node("Tanh", {"x"}, {"b"}) + last;  // b is not of the first joint
  CHECK(layers(apart, "pytorch").find("tanh") < layers(apart, "pytorch").find("concat"));
}

TEST_CASE("attention is found with its scale and its causal mask") {
  const std::string heads = value(11, "q", {"N", "2", "s", "4"}) +
                            value(11, "k", {"N", "2", "s", "4"}) +
                            value(11, "v", {"N", "2", "s", "4"});
  const std::string graph =
      node("Transpose", {"k"}, {"kt"}, integers_attribute("perm", {0, 1, 3, 2})) +
      node("MatMul", {"q", "kt"}, {"a"}) + node("Mul", {"a", "half"}, {"b"}) +
      node("ConstantOfShape", {"size"}, {"ones"}) +
      node("Trilu", {"ones"}, {"mask"}, integer_attribute("upper", 0)) +
      node("Add", {"b", "mask"}, {"c"}) + node("Softmax", {"c"}, {"p"}) +
      node("MatMul", {"p", "v"}, {"y"}) + real("half", 0.5) + integers("size", {16, 16}) + heads +
      value(12, "y", {"N", "2", "s", "4"});
  CHECK(layers_of_onnx(onnx_file(graph), {.seq = 16}) ==
        "  - scaled_dot_product_attention: {name: MatMul_y, from: [q, k, v], causal: true}\n");
}

TEST_CASE("unknown operators are named all at once, or counted") {
  const std::string graph = node("Foo", {"x"}, {"a"}) + node("Bar", {"a"}, {"b"}) +
                            node("Foo", {"b"}, {"c"}) + node("Mul", {"c", "w"}, {"y"}) +
                            weights("w", {8}) + image + value(12, "y", {"N", "3", "8", "8"});
  CHECK(layers_of_onnx(onnx_file(graph)) ==
        "net.onnx: error: node 'Foo_a' (Foo): the file does not say its output's size\n");
  std::string sized = graph;
  for (const char* name : {"a", "b", "c"}) sized += value(13, name, {"N", "3", "8", "8"});
  const std::string scaled =
      node("Mul", {"x", "w"}, {"x2"}) + node("Foo", {"x2"}, {"a"}) + node("Bar", {"a"}, {"b"}) +
      node("Foo", {"b"}, {"y"}) + weights("w", {8}) + image + value(13, "a", {"N", "3", "8", "8"}) +
      value(13, "b", {"N", "3", "8", "8"}) + value(12, "y", {"N", "3", "8", "8"});
  CHECK(layers_of_onnx(onnx_file(scaled)) ==
        "net.onnx: error: the catalogue cannot express Bar, Foo (2 times) of this model\n"
        "  have unknown operators counted by their outputs\n");
  CHECK(layers_of_onnx(onnx_file(scaled), {.allow_unknown = true})
            .find("  - custom: {name: Bar_b, from: Foo_a, shape: [batch, 3, 8, 8], saves_inputs: "
                  "true}\n") != std::string::npos);
}

TEST_CASE("open dimensions want a size") {
  const std::string graph = node("Relu", {"x"}, {"y"}) +
                            value(11, "x", {"batch", "3", "height", "seq_len"}) +
                            value(12, "y", {"batch", "3", "height", "seq_len"});
  CHECK(layers_of_onnx(onnx_file(graph)) ==
        "net.onnx: error: dimension 'height' of 'x' is open\n"
        "  give the dimension a size\n"
        "net.onnx: error: dimension 'seq_len' of 'x' is a sequence's, and has no length\n"
        "  give the sequence a length\n");
  CHECK(layers_of_onnx(onnx_file(graph), {.seq = 7, .values = {{"height", "5"}}}) ==
        "  - relu: {name: Relu_y, from: x}\n");
  CHECK(
      layers_of_onnx(onnx_file(graph), {.seq = 7, .values = {{"heigth", "5"}, {"height", "x"}}}) ==
      "net.onnx: error: dimension 'height' takes 'batch' or a size, not 'x'\n"
      "net.onnx: error: the model has no open dimension 'heigth'\n");
}

TEST_CASE("what breaks off is told by its byte") {
  const std::string whole = onnx_file(node("Relu", {"x"}, {"y"}) + image + value(12, "y", {"N"}));
  CHECK(layers_of_onnx(whole.substr(0, 30)) ==
        "net.onnx: error: byte 8: field 7 has 70 bytes, and 20 are left\n"
        "  is the file whole? onnx.checker.check_model says what else may be wrong with it\n");
  for (std::size_t length = 4; length < whole.size(); ++length) {
    const auto imported = import_model(file_head_of(onnx_source(whole.substr(0, length))), {});
    CAPTURE(length);
    REQUIRE((!imported || imported->has_value()));
    if (!imported) REQUIRE(!render(imported.error()).empty());
  }
}

TEST_CASE("resnet18, exported by PyTorch, is torchvision's") {
  const auto imported =
      import_model(read_file_head(testing::source_path("/tests/onnx/resnet18.onnx")), {});
  REQUIRE(imported.has_value());
  REQUIRE(imported->has_value());
  const auto model = load_model((*imported)->description);
  REQUIRE(model.has_value());
  const auto found = find_model("resnet18", testing::source_path("/configs/models"));
  const auto own = load_model(found->source);
  REQUIRE(own.has_value());
  CHECK(parameter_count(*model) == parameter_count(*own));
  const auto has = [&](std::string_view name) {
    return std::any_of(model->parameters.begin(), model->parameters.end(),
                       [&](const Parameter& one) { return one.name == name; });
  };
  CHECK(has("layer4.0.downsample.0.weight"));
  CHECK(has("bn1.running_var"));
  CHECK(has("fc.bias"));
}

}  // namespace stowage
