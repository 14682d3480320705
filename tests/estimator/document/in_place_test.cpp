// Step files whose kernels write over their arguments.
#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/document/make_document.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr const char* two_layers =
    "model: net\ninputs: {x: {shape: [batch, 8]}, t: {shape: [batch, 8]}}\nlayers:\n"
    "  - linear: {name: a, from: x, features: 8}\n  - relu: {name: act}\n"
    "  - linear: {name: head, features: 8}\nloss:\n  mse: {from: [head, t]}\n";

StepDocument in_place_document() {
  return make_document(testing::described(two_layers), {.lowering = {.in_place = true}},
                       Runtime::stowage, {}, step_alone)
      .value();
}

std::string mistake_of(const std::string& text) {
  const auto read = read_step(std::make_shared<const SourceText>(SourceText{"s", text}));
  return read ? "" : read.error().front().message;
}

/// After the change, the mistake in a step's file.
template <typename Change>
std::string mistake_after(Change change) {
  StepDocument document = in_place_document();
  StepGraph graph = *document.graph;
  const auto act = std::ranges::find(graph.nodes, "act.backward", &KernelNode::name);
  REQUIRE(act != graph.nodes.end());
  change(graph, *act);
  document.graph = std::make_shared<const StepGraph>(std::move(graph));
  return mistake_of(write_step(document));
}

}  // namespace

TEST_CASE("a step's file says that its kernels work in place") {
  StepDocument document = in_place_document();
  const std::string text = write_step(document);
  CHECK(text.find("\"in_place\": true") != std::string::npos);
  CHECK(mistake_of(text) == "");
  document.runtime = Runtime::tensorflow;
  CHECK(mistake_of(write_step(document)) ==
        "the runtime tensorflow makes room for every result: it has no steps with 'in_place'");
  std::string other = text;
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t at = other.find(from);
    REQUIRE(at != std::string::npos);
    other.replace(at, from.size(), to);
  };
  replace("\"kernels\": \"stowage\"", "\"kernels\": \"pytorch\"");
  CHECK(mistake_of(other) == "the kernels of pytorch make room for every result");
  replace("\"in_place\": true", "\"in_place\": 1");
  CHECK(mistake_of(other) != "");
}

TEST_CASE("a result over an argument that its kernel still reads is refused") {
  CHECK(mistake_after([](StepGraph&, KernelNode&) {}) == "");
  // act = act.backward(act, dy)
  CHECK(mistake_after([](StepGraph& graph, KernelNode& act) {
          act.writes[0].storage = act.reads[0].storage;
          graph.micro_batch = {};
        }) == "the step: node 'act.backward' writes over 'act', which relu_backward still reads");
  // act = act.backward(act, act)
  CHECK(mistake_after([](StepGraph&, KernelNode& act) {
          act.reads[1].storage = act.writes[0].storage = act.reads[0].storage;
        }) == "the step: node 'act.backward' writes over 'act', which relu_backward still reads");
  // The same bytes under another shape.
  CHECK(mistake_after([](StepGraph&, KernelNode& act) {
          act.writes[0].shape = {Affine(0, 4), Affine(2)};
          act.writes[0].strides = contiguous_strides(act.writes[0].shape);
        }) ==
        "the step: node 'act.backward' writes over 'head.grad_input', which relu_backward "
        "still reads");
}

}  // namespace stowage
