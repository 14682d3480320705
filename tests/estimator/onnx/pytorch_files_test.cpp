// ONNX files of PyTorch's exporters: what they leave unsaid or rewrote becomes the module's again.
#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"
#include "tests/estimator/onnx/onnx_text.hpp"

namespace stowage {

using testing::integer_attribute;
using testing::integers;
using testing::integers_attribute;
using testing::metadata;
using testing::node;
using testing::onnx_file;
using testing::real;
using testing::value;
using testing::weights;

namespace {

struct ExportedText {
  std::string layers;  ///< or the mistakes
  std::string notes;
};

ExportedText read_export(const std::string& graph, const ImportOptions& options = {},
                         const std::string& producer = "pytorch") {
  const auto source =
      std::make_shared<const SourceText>(SourceText{"net.onnx", onnx_file(graph, 20, producer)});
  const auto imported = import_model(file_head_of(source), options);
  if (!imported) return {render(imported.error()), ""};
  REQUIRE(imported->has_value());
  const std::string text = (*imported)->description->text;
  const auto model = load_model((*imported)->description);
  CAPTURE(text);
  if (!model) return {render(model.error()), ""};
  const auto begin = text.find("layers:\n") + std::string_view("layers:\n").size();
  return {text.substr(begin, text.find("output:") - begin), render((*imported)->notes)};
}

bool has_text(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string photo = value(11, "x", {"batch", "3", "8", "8"});
const std::string filter = weights("conv.weight", {4, 3, 1, 1});

std::string batch_norm(const std::string& from, const std::string& to, const std::string& owner) {
  return node(
      "BatchNormalization",
      {from, owner + ".weight", owner + ".bias", owner + ".running_mean", owner + ".running_var"},
      {to});
}
std::string norm_weights(const std::string& owner) {
  return weights(owner + ".weight", {4}) + weights(owner + ".bias", {4}) +
         weights(owner + ".running_mean", {4}) + weights(owner + ".running_var", {4});
}

}  // namespace

TEST_CASE("activations and residual sums of PyTorch's image networks are in place") {
  const std::string graph =
      node("Conv", {"x", "conv.weight"}, {"c"}) + batch_norm("c", "n", "bn1") +
      node("Relu", {"n"}, {"a"}) + node("Conv", {"a", "conv2.weight"}, {"d"}) +
      batch_norm("d", "m", "bn2") + node("Add", {"m", "a"}, {"s"}) + node("Relu", {"s"}, {"y"}) +
      filter + norm_weights("bn1") + norm_weights("bn2") + weights("conv2.weight", {4, 4, 1, 1}) +
      photo + value(12, "y", {"batch", "4", "8", "8"});
  const ExportedText read = read_export(graph);
  CHECK(has_text(read.layers, "  - relu: {name: Relu_a, from: bn1, in_place: true}\n"));
  CHECK(has_text(read.layers, "  - add: {name: Add_s, from: [bn2, Relu_a], in_place: true}\n"));
  CHECK(has_text(read.layers, "  - relu: {name: Relu_y, from: Add_s, in_place: true}\n"));
  CHECK(
      has_text(read.notes,
               "note: 2 activations and 1 sum are taken to overwrite their input, as in PyTorch's "
               "image networks; the file does not say it\n"
               "  let every layer make a result of its own\n"));
  const ExportedText apart = read_export(graph, {.values = {{"in_place", "false"}}});
  CHECK(!has_text(apart.layers, "in_place"));
  CHECK(!has_text(apart.notes, "overwrite"));
  const ExportedText of_others = read_export(graph, {}, "tf2onnx");
  CHECK(!has_text(of_others.layers, "in_place"));
  const ExportedText asked = read_export(graph, {.values = {{"in_place", "true"}}}, "tf2onnx");
  CHECK(asked.layers == read.layers);
  CHECK(read_export(graph, {.values = {{"in_place", "yes"}}}).layers ==
        "net.onnx: error: 'in_place' takes true or false, not 'yes'\n");
}

TEST_CASE("what others read is not overwritten") {
  const std::string graph = node("Conv", {"x", "conv.weight"}, {"c"}) + node("Relu", {"c"}, {"a"}) +
                            node("Add", {"a", "c"}, {"y"}) + filter + photo +
                            value(12, "y", {"batch", "4", "8", "8"});
  CHECK(!has_text(read_export(graph).layers, "in_place"));
}

TEST_CASE("a batch norm that was folded into a convolution is put back") {
  const std::string rewritten =
      metadata("pkg.onnxscript.rewriter.rule_name",
               "RemoveOptionalBiasFromConv, FuseBatchNormIntoConv") +
      metadata("pkg.torch.onnx.name_scopes", "['', 'stem', 'stem.bn', '_native_batch_norm_1']") +
      metadata("pkg.torch.onnx.stack_trace", std::string(10'000, 'x'));
  const std::string graph = node("Conv", {"x", "conv.weight", "stem.bn.bias"}, {"c"}, rewritten) +
                            node("Relu", {"c"}, {"y"}) + filter + weights("stem.bn.bias", {4}) +
                            photo + value(12, "y", {"batch", "4", "8", "8"});
  const ExportedText read = read_export(graph);
  CHECK(read.layers ==
        "  - conv2d: {name: conv, from: x, channels: 4, kernel: [1, 1], stride: [1, 1], padding: "
        "[0, 0], dilation: [1, 1], groups: 1, bias: false, parameter_names: {weight: "
        "conv.weight}}\n"
        "  - batch_norm: {name: stem_bn, from: conv, parameter_names: {weight: stem.bn.weight, "
        "bias: stem.bn.bias, running_mean: stem.bn.running_mean, running_var: "
        "stem.bn.running_var, num_batches_tracked: stem.bn.num_batches_tracked}}\n"
        "  - relu: {name: Relu_y, from: stem_bn, in_place: true}\n");
  CHECK(
      has_text(read.notes,
               "note: a batch norm that the exporter folded into the convolution before it is put "
               "back\n"));
}

TEST_CASE("a bias of zeros that was taken away is put back") {
  const std::string rule =
      metadata("pkg.onnxscript.rewriter.rule_name", "RemoveOptionalBiasFromConv");
  const auto graph = [&](const std::string& call) {
    return node("Conv", {"x", "conv.weight"}, {"y"},
                rule + metadata("pkg.torch.onnx.fx_node", call)) +
           filter + photo + value(12, "y", {"batch", "4", "8", "8"});
  };
  CHECK(has_text(read_export(graph("%conv2d(args = (%x, %p_conv_weight, %p_conv_bias))")).layers,
                 "bias: true, parameter_names: {weight: conv.weight, bias: conv.bias}"));
  // The exporter names the rule where there was no bias too.
  CHECK(has_text(read_export(graph("%conv2d(args = (%x, %p_conv_weight))")).layers,
                 "bias: false, parameter_names: {weight: conv.weight}"));
}

TEST_CASE("merged equal vectors are separated, shared blocks are not") {
  const auto graph = [](const std::string& second) {
    return node("MatMul", {"x", "a.weight"}, {"p"}) + node("Add", {"p", "zeros"}, {"q"}) +
           node("MatMul", {"q", second}, {"r"}) + node("Add", {"r", "zeros"}, {"y"}) +
           weights("a.weight", {6, 6}) + weights("b.weight", {6, 6}) + weights("zeros", {6}) +
           value(11, "x", {"batch", "6"}) + value(12, "y", {"batch", "6"});
  };
  const ExportedText parted = read_export(graph("b.weight"));
  CHECK(!has_text(parted.layers, "tie:"));
  CHECK(has_text(parted.notes,
                 "note: a layer has parameters that are equal, which the exporter made one, and it "
                 "has their own here\n"));
  const ExportedText shared = read_export(graph("a.weight"));
  CHECK(has_text(shared.layers, "tie: {weight: a_3.weight, bias: a_3.bias}"));
}

TEST_CASE("a merged scale and running variance become two vectors") {
  const std::string graph =
      node("BatchNormalization", {"x", "ones", "zeros", "zeros", "ones"}, {"y"}) +
      weights("ones", {3}) + weights("zeros", {3}) + photo +
      value(12, "y", {"batch", "3", "8", "8"});
  const std::string layers = read_export(graph, {}, "another").layers;
  CHECK(has_text(layers, "  - batch_norm: {name: ones, from: x, "));
  CHECK(has_text(layers, "parameter_names: {weight: ones, bias: zeros}}"));
}

TEST_CASE("attention is PyTorch's fused one where both of its inputs are scaled") {
  const auto graph = [](const std::string& scaled, const std::string& query,
                        const std::string& key) {
    return node("Transpose", {"k"}, {"kt"}, integers_attribute("perm", {0, 1, 3, 2})) + scaled +
           node("MatMul", {query, key}, {"a"}) + node("Softmax", {"a"}, {"p"}) +
           node("MatMul", {"p", "v"}, {"y"}) + real("root", 0.7071068F) + real("half", 0.5) +
           value(11, "q", {"N", "2", "5", "4"}) + value(11, "k", {"N", "2", "5", "4"}) +
           value(11, "v", {"N", "2", "5", "4"}) + value(12, "y", {"N", "2", "5", "4"});
  };
  const std::string both = node("Mul", {"q", "root"}, {"qs"}) + node("Mul", {"kt", "root"}, {"ks"});
  CHECK(read_export(graph(both, "qs", "ks")).layers ==
        "  - scaled_dot_product_attention: {name: MatMul_y, from: [q, k, v]}\n");
  const std::string one = node("Mul", {"q", "half"}, {"qs"});
  CHECK(has_text(read_export(graph(one, "qs", "kt")).layers, "  - softmax: "));
  CHECK(!has_text(read_export(graph(one, "qs", "kt")).layers, "attention"));
  CHECK(has_text(read_export(graph(one, "qs", "kt"), {}, "tf2onnx").layers, "attention"));
}

TEST_CASE("keys and values that are repeated are grouped queries") {
  std::string graph;
  for (const std::string one : {"k", "v"}) {
    graph += node("Unsqueeze", {one, "two"}, {one + "1"}) +
             node("Expand", {one + "1", "wide"}, {one + "2"}) +
             node("Reshape", {one + "2", "heads"}, {one + "4"});
  }
  graph += node("Transpose", {"k4"}, {"kt"}, integers_attribute("perm", {0, 1, 3, 2})) +
           node("Mul", {"q", "root"}, {"qs"}) + node("Mul", {"kt", "root"}, {"ks"}) +
           node("MatMul", {"qs", "ks"}, {"a"}) + node("Add", {"a", "mask"}, {"m"}) +
           node("Softmax", {"m"}, {"p"}) + node("MatMul", {"p", "v4"}, {"y"}) +
           real("root", 0.7071068F) + integers("two", {2}) + integers("wide", {1, 1, 3, 1, 1}) +
           integers("heads", {0, 6, 5, 4}) + value(11, "q", {"N", "6", "5", "4"}) +
           value(11, "k", {"N", "2", "5", "4"}) + value(11, "v", {"N", "2", "5", "4"}) +
           value(11, "mask", {"N", "1", "5", "5"}) + value(12, "y", {"N", "6", "5", "4"});
  CHECK(has_text(read_export(graph).layers,
                 "  - scaled_dot_product_attention: {name: MatMul_y, from: [q, k, v, mask], "
                 "grouped: repeat}\n"));
}

TEST_CASE("parts of a sequence are those of a split") {
  const std::string graph =
      node("SplitToSequence", {"x", "four"}, {"parts"}, integer_attribute("axis", 1)) +
      node("SequenceAt", {"parts", "one"}, {"b"}) + node("SequenceAt", {"parts", "zero"}, {"a"}) +
      node("Concat", {"b", "a"}, {"y"}, integer_attribute("axis", 1)) + value(11, "x", {"N", "6"}) +
      value(12, "y", {"N", "6"});
  const auto scalar = [](const std::string& name, std::uint64_t number) {
    return testing::text_field(5, testing::number_field(2, 7) + testing::number_field(7, number) +
                                      testing::text_field(8, name));
  };
  CHECK(read_export(graph + scalar("four", 4) + scalar("one", 1) + scalar("zero", 0)).layers ==
        "  - split: {name: SplitToSequence_parts, from: x, axis: 1, sizes: [4, 2]}\n"
        "  - concat: {name: Concat_y, from: [SplitToSequence_parts.1, SplitToSequence_parts.0], "
        "axis: 1}\n");
  CHECK(
      has_text(read_export(graph + scalar("four", 4) + scalar("one", 7) + scalar("zero", 0)).layers,
               "the sequence has no such part"));
}

TEST_CASE("padding that is transposed and reversed is folded") {
  // torch's pads, last axis first: [[0, 0], [0, 0], [1, 2], [3, 4]] as pairs, read backwards.
  const std::string graph =
      node("Reshape", {"pads", "pairs"}, {"p"}) +
      node("Slice", {"p", "last", "far", "zero", "back"}, {"b"}) +
      node("Transpose", {"b"}, {"t"}, integers_attribute("perm", {1, 0})) +
      node("Reshape", {"t", "flat"}, {"all"}) + node("Pad", {"x", "all"}, {"y"}) +
      integers("pads", {3, 4, 1, 2, 0, 0, 0, 0}) + integers("pairs", {-1, 2}) +
      integers("last", {-1}) + integers("far", {-9223372036854775807}) + integers("zero", {0}) +
      integers("back", {-1}) + integers("flat", {-1}) + photo +
      value(12, "y", {"batch", "3", "11", "15"});
  CHECK(read_export(graph).layers ==
        "  - pad: {name: Pad_y, from: x, before: [1, 3], after: [2, 4], mode: constant, value: "
        "0}\n");
}

TEST_CASE("an instance norm of groups is a group norm") {
  const std::string graph =
      node("Reshape", {"x", "groups"}, {"g"}) +
      node("InstanceNormalization", {"g", "ones", "zeros"}, {"n"}) + node("Shape", {"x"}, {"s"}) +
      node("Reshape", {"n", "s"}, {"m"}) + node("Unsqueeze", {"gn.weight", "axes"}, {"w"}) +
      node("Unsqueeze", {"gn.bias", "axes"}, {"b"}) + node("Mul", {"m", "w"}, {"p"}) +
      node("Add", {"p", "b"}, {"y"}) + node("Expand", {"one", "three"}, {"ones"}) +
      node("Expand", {"zero", "three"}, {"zeros"});
  const std::string first =
      node("Expand", {"one", "three"}, {"ones"}) + node("Expand", {"zero", "three"}, {"zeros"});
  const std::string rest =
      real("one", 1) + real("zero", 0) + integers("three", {3}) + integers("groups", {0, 3, -1}) +
      integers("axes", {1, 2}) + weights("gn.weight", {6}) + weights("gn.bias", {6}) +
      value(11, "x", {"N", "6", "4", "4"}) + value(12, "y", {"N", "6", "4", "4"});
  CHECK(read_export(first + graph + rest).layers ==
        "  - group_norm: {name: Add_y, from: x, groups: 3, eps: 1e-05, parameter_names: {weight: "
        "gn.weight, bias: gn.bias}}\n");
}

TEST_CASE("numbered dimensions are the batch and the sequence") {
  const std::string graph = node("Gather", {"wte.weight", "ids"}, {"y"}) +
                            weights("wte.weight", {10, 4}) + value(11, "ids", {"s72", "s70"}, 7) +
                            value(12, "y", {"s72", "s70", "4"});
  CHECK(read_export(graph, {.seq = 6, .loss = "none"}).layers ==
        "  - embedding: {name: wte, from: ids, count: 10, features: 4, parameter_names: {weight: "
        "wte.weight}}\n");
  CHECK(read_export(graph).layers ==
        "net.onnx: error: dimension 's70' of 'ids' is a sequence's, and has no length\n"
        "  give the sequence a length\n");
}

}  // namespace stowage
