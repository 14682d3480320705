// What happens inside recorded calls is added, call by call.
#include "estimator/recorded/complete_step.hpp"

#include <doctest/doctest.h>

#include <string>

#include "estimator/pytorch/attention.hpp"
#include "estimator/pytorch/kernel_scratch.hpp"
#include "tests/estimator/recorded/raw_step.hpp"

namespace stowage {

namespace {

using testing::completed;
using testing::RawStep;

Attributes window(std::int64_t stride, std::int64_t padding, bool transposed = false) {
  Attributes attributes;
  attributes.set("stride", std::vector<std::int64_t>{stride, stride});
  attributes.set("padding", std::vector<std::int64_t>{padding, padding});
  attributes.set("dilation", std::vector<std::int64_t>{1, 1});
  attributes.set("transposed", transposed);
  attributes.set("groups", std::int64_t{1});
  return attributes;
}

/// What the scratch of a node weighs.
Affine scratch_of(const StepGraph& graph, const KernelNode& node) {
  Affine bytes = 0;
  for (const StorageId id : node.temporaries) bytes = bytes + graph.storage(id).bytes;
  return bytes;
}

std::vector<std::string> names_of(const std::vector<KernelNode>& nodes) {
  std::vector<std::string> names;
  for (const KernelNode& node : nodes) names.push_back(node.name);
  return names;
}

RawStep convolution(const Attributes& attributes) {
  RawStep step;
  const TensorView x = step.given("x", {batch_symbol, 3, 8, 8}), w = step.given("w", {4, 3, 3, 3});
  step.call("aten::convolution", "input,weight", {x, w}, "0",
            {step.made("y", {batch_symbol, 4, 8, 8})}, attributes);
  return step;
}

}  // namespace

TEST_CASE("a convolution asks for its workspace as the lowered one does") {
  const auto graph = completed(convolution(window(1, 1)));
  REQUIRE(graph->nodes.size() == 1);
  CHECK(graph->nodes[0].kernel == Kernel::convolution_forward);
  CHECK(graph->nodes[0].flops == Affine(0, 2 * 4 * 8 * 8 * 27));
  REQUIRE(graph->nodes[0].convolution == 0);
  const ConvolutionCall& call = graph->convolutions[0];
  CHECK(call.direction == ConvolutionCall::Direction::forward);
  CHECK(call.x.shape == Shape{batch_symbol, 3, 8, 8});
  CHECK(call.window->padding == std::vector<std::int64_t>{1, 1});
}

TEST_CASE("a convolution's backward is its data gradient, its filter's and its bias's") {
  RawStep step;
  const TensorView x = step.given("x", {batch_symbol, 3, 8, 8}), w = step.given("w", {4, 3, 3, 3}),
                   dy = step.given("dy", {batch_symbol, 4, 8, 8});
  step.call("aten::convolution_backward", "grad_output,input,weight", {dy, x, w}, "0,1,2",
            {step.made("dx", x.shape), step.made("dw", w.shape), step.made("db", {4})},
            window(1, 1));
  const auto graph = completed(step);
  CHECK(names_of(graph->nodes) == std::vector<std::string>{"convolution_backward.data",
                                                           "convolution_backward.filter",
                                                           "convolution_backward.bias"});
  CHECK(graph->convolutions[1].direction == ConvolutionCall::Direction::backward_filter);
  // What the call was given and has returned is there to its end.
  CHECK(graph->nodes[2].holds ==
        std::vector<StorageId>{x.storage, w.storage, StorageId{3}, StorageId{4}});
}

TEST_CASE("a transposed convolution is the data gradient of a plain one") {
  RawStep step;
  const TensorView x = step.given("x", {batch_symbol, 8, 4, 4}), w = step.given("w", {8, 4, 2, 2});
  step.call("aten::convolution", "input,weight", {x, w}, "0",
            {step.made("y", {batch_symbol, 4, 8, 8})}, window(2, 0, true));
  const auto graph = completed(step);
  CHECK(graph->nodes[0].kernel == Kernel::transposed_convolution_forward);
  CHECK(graph->convolutions[0].direction == ConvolutionCall::Direction::backward_data);
  CHECK(graph->convolutions[0].y.shape == x.shape);
}

TEST_CASE("what does not lie as a kernel reads it is copied within the call") {
  RawStep step;
  TensorView x = step.given("x", {batch_symbol, 6, 4});
  x.shape = {batch_symbol, 4, 6};
  x.strides = {24, 1, 4};
  step.call("aten::_softmax", "self", {x}, "0", {step.made("y", x.shape)});
  const auto graph = completed(step);
  REQUIRE(names_of(graph->nodes) == std::vector<std::string>{"_softmax.argument0", "_softmax"});
  CHECK(graph->nodes[0].kernel == Kernel::copy);
  const Storage& copy = graph->storage(graph->nodes[0].writes[0].storage);
  CHECK(copy.storage_class == StorageClass::workspace);
  CHECK(copy.bytes == Affine(0, 4 * 24));
}

TEST_CASE("softmax's backward makes the product of the gradient and the result first") {
  RawStep step;
  const TensorView dy = step.given("dy", {batch_symbol, 4, 6}),
                   y = step.given("y", {batch_symbol, 4, 6});
  step.call("aten::_softmax_backward_data", "grad_output,output", {dy, y}, "0",
            {step.made("dx", y.shape)});
  const auto graph = completed(step);
  REQUIRE(graph->nodes.size() == 1);
  CHECK(graph->nodes[0].kernel == Kernel::softmax_backward);
  REQUIRE(graph->nodes[0].temporaries.size() == 1);
  const Storage& product = graph->storage(graph->nodes[0].temporaries[0]);
  CHECK(product.name == "_softmax_backward_data.grad_times_result");
  CHECK(product.bytes == Affine(0, 96));  // of float32
}

TEST_CASE("the gradient of an embedding sorts its indices") {
  RawStep step;
  const TensorView dy = step.given("dy", {batch_symbol, 16, 32}),
                   indices = step.given("indices", {batch_symbol, 16}, DataType::int64);
  step.call("aten::embedding_dense_backward", "grad_output,indices", {dy, indices}, "0",
            {step.made("dw", {100, 32})});
  const auto graph = completed(step);
  CHECK(scratch_of(*graph, graph->nodes[0]) == Affine(0, 2 * 16 * 8));
}

TEST_CASE("indexed writes sort their indices only where they accumulate") {
  for (const bool accumulates : {true, false}) {
    RawStep step;
    const TensorView table = step.given("table", {50, 3}),
                     index = step.given("index", {40}, DataType::int64),
                     values = step.given("values", {40, 3});
    Attributes attributes;
    attributes.set("accumulate", accumulates);
    step.call("aten::index_put_", "self,indices:1,values", {table, index, values}, "0", {table},
              attributes);
    const auto graph = completed(step);
    CHECK(scratch_of(*graph, graph->nodes[0]) == Affine(accumulates ? 4 * 40 * 8 + 1 : 0));
  }
}

TEST_CASE("a sort of many pairs has copies where the keys take more than one pass") {
  // 10,000 pairs are three tiles of 3,840: a counter for each of 256 digits, beside the digits'
  // starts.
  constexpr std::int64_t tiles = 3'072, pass = 1024, tickets = 256;
  CHECK(sort_pairs_scratch(2'304, 8, 8, 8) == Affine(1));
  CHECK(sort_pairs_scratch(10'000, 8, 8, 8) == Affine(pass + tickets + tiles));
  CHECK(sort_pairs_scratch(10'000, 8, 8, 9) == Affine(2 * pass + tickets + tiles + 160'000));
  const TensorView values = contiguous_view(StorageId{}, {10'000, 4}, DataType::float32);
  CHECK(index_put_scratch(10'000, 256, values) == Affine(320'000 + pass + tickets + tiles));
  CHECK(index_put_scratch(10'000, 257, values) == Affine(480'000 + 2 * pass + tickets + tiles));
}

TEST_CASE("a recorded sort of up to 4096 elements numbers them, a longer one copies") {
  for (const std::int64_t length : {4096, 5000}) {
    RawStep step;
    const TensorView x = step.given("x", {length, 2});
    Attributes attributes;
    attributes.set("dim", std::int64_t{0});
    step.call("aten::sort", "self", {x}, "0,1",
              {step.made("values", {length, 2}), step.made("places", {length, 2}, DataType::int64)},
              attributes);
    const auto graph = completed(step);
    CHECK(graph->nodes[0].kernel == Kernel::top_places);
    // 48 bytes an element: places and the sort's copies of them and of the keys; twice, as lines
    // are sorted together; the axis moved to the end and its results back.
    const Affine large = Affine(480'000 + 4'096 + 256 + 3'072);
    CHECK(scratch_of(*graph, graph->nodes[0]) == (length == 4096 ? Affine(32'768) : large));
  }
}

TEST_CASE("attention in float32 keeps what the memory-efficient kernel adds up") {
  RawStep step;
  step.graph().settings.compute_capability = 8.6;
  const Shape shape{batch_symbol, 2, 128, 64};
  const TensorView q = step.given("q", shape), out = step.given("out", shape),
                   rows = step.given("rows", {batch_symbol, 2, 128});
  step.call("aten::_scaled_dot_product_efficient_attention_backward",
            "grad_out_,query,key,value,out,logsumexp", {q, q, q, q, out, rows}, "0,1,2",
            {step.made("dq", shape), step.made("dk", shape), step.made("dv", shape)});
  const auto graph = completed(step);
  const KernelNode& node = graph->nodes[0];
  CHECK(node.kernel == Kernel::attention_backward);
  CHECK(node.attributes.text("implementation") == "efficient");
  const AttentionSizes sizes = attention_sizes(shape, shape, shape);
  const TensorView dy = node.reads[0];
  CHECK(scratch_of(*graph, node) ==
        attention_backward_scratch(AttentionImplementation::efficient, 8.6, sizes, dy, out));
}

TEST_CASE("addmm with a vector is a layer, one with a matrix a product") {
  for (const bool is_layer : {true, false}) {
    RawStep step;
    const TensorView bias = step.given("bias", is_layer ? Shape{3} : Shape{batch_symbol, 3}),
                     x = step.given("x", {batch_symbol, 4}), w = step.given("w", {4, 3});
    step.call("aten::addmm", "self,mat1,mat2", {bias, x, w}, "0",
              {step.made("y", {batch_symbol, 3})});
    const auto graph = completed(step);
    CHECK(graph->nodes[0].kernel == (is_layer ? Kernel::linear_forward : Kernel::matmul));
    CHECK(graph->nodes[0].reads == std::vector<TensorView>{x, w, bias});
    CHECK(graph->nodes[0].flops == Affine(0, 2 * 3 * 4));
  }
}

TEST_CASE("kernels that nothing is known of are named once in a warning") {
  RawStep step;
  const TensorView x = step.given("x", {batch_symbol, 4});
  step.call("aten::cummax", "self", {x}, "0", {step.made("y", x.shape)});
  step.call("aten::relu_", "self", {x}, "self", {x});
  step.call("mine::scan", "x", {x}, "0", {step.made("z", x.shape)});
  step.graph().nodes.push_back(step.graph().nodes[0]);
  step.graph().nodes.back().name = "cummax.2";
  const auto whole = complete_step(step.document());
  REQUIRE(whole.has_value());
  REQUIRE(whole->warnings.size() == 1);
  CHECK(
      render(whole->warnings) ==
      "warning: nothing is known of what these kernels allocate inside: aten::cummax, mine::scan\n"
      "  they are weighed by their arguments and results alone\n");
  CHECK(kernel_name(whole->graph->nodes[0]) == "aten::cummax");
}

TEST_CASE("a completed step is complete: once more changes nothing") {
  RawStep step = convolution(window(1, 1));
  step.call("aten::cummax", "self", {step.graph().nodes[0].writes[0]}, "0",
            {step.made("z", {batch_symbol, 4, 8, 8})});
  const auto once = complete_step(step.document());
  REQUIRE(once.has_value());
  const auto twice = complete_step(*once);
  REQUIRE(twice.has_value());
  CHECK(write_step(*twice) == write_step(*once));
  const auto read =
      read_completed_step(std::make_shared<const SourceText>(SourceText{"s", write_step(*once)}));
  REQUIRE(read.has_value());
  CHECK(*read->graph == *once->graph);
}

TEST_CASE("what is not what a kernel takes is refused with the node's name") {
  CHECK(testing::refusal_of(convolution(window(0, 1))) ==
        "node 'convolution' calls aten::convolution, whose 'stride' is no window of 2 axes");
  CHECK(testing::refusal_of(convolution({})) ==
        "node 'convolution' calls aten::convolution, and lacks the attribute 'stride'");
  Attributes groups = window(1, 1);
  groups.set("groups", std::int64_t{0});
  CHECK(testing::refusal_of(convolution(groups)) ==
        "node 'convolution' calls aten::convolution, whose 'groups' is no number of groups");
  RawStep vector;
  const TensorView q = vector.given("q", {batch_symbol, 4});
  vector.call("aten::_scaled_dot_product_flash_attention", "query,key,value", {q, q, q}, "0",
              {vector.made("y", q.shape)});
  CHECK(testing::refusal_of(vector) ==
        "node '_scaled_dot_product_flash_attention' calls "
        "aten::_scaled_dot_product_flash_attention, whose 'query' is [batch, 4], and it takes 4 "
        "axes");
}

TEST_CASE("sizes past 64 bits and ones that grow faster than the batch are refused") {
  constexpr std::int64_t huge = std::int64_t{1} << 60;
  RawStep large;
  TensorView q = large.given("q", {1});
  q.shape = {1, huge, huge, 8};
  q.strides = {0, 0, 0, 0};
  large.call("aten::_scaled_dot_product_flash_attention", "query,key,value", {q, q, q}, "0",
             {large.made("y", {1, 1, 1, 8})});
  CHECK(testing::refusal_of(large) ==
        "node '_scaled_dot_product_flash_attention' calls "
        "aten::_scaled_dot_product_flash_attention, whose sizes go past 64 bits");
  RawStep square;
  TensorView a = square.given("a", {batch_symbol});
  a.shape = {batch_symbol, batch_symbol};
  a.strides = {0, 1};
  square.call("aten::mm", "self,mat2", {a, a}, "0", {square.made("y", {batch_symbol})});
  CHECK(testing::refusal_of(square) ==
        "node 'mm' calls aten::mm, whose sizes grow faster than the batch");
}

TEST_CASE("what is added to a micro-batch is there once for each") {
  RawStep step = convolution(window(1, 1));
  StepGraph& graph = step.graph();
  TensorView x = graph.nodes[0].writes[0];
  x.strides = {256, 1, 32, 4};
  step.call("aten::_log_softmax", "self", {x}, "0", {step.made("z", x.shape)});
  step.given("state", {1});
  graph.storages.back().storage_class = StorageClass::buffer;
  MicroBatch& part = graph.micro_batch;
  part.first_node = NodeId{0}, part.end_node = NodeId{2};
  part.first_storage = StorageId{2}, part.end_storage = StorageId{4};
  const auto whole = completed(step);
  CHECK(whole->micro_batch.end_node == NodeId{3});
  CHECK(whole->micro_batch.end_storage == StorageId{5});
  CHECK(whole->storages[4].name == "_log_softmax.argument0");
  CHECK(whole->storages[5].name == "state");
  CHECK(whole->nodes[1].writes[0].storage == StorageId{4});
}

}  // namespace stowage
