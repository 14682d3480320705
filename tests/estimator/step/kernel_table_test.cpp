// Kernels' signatures, and calls held against them.
#include "estimator/step/kernel_table.hpp"

#include <doctest/doctest.h>

#include "estimator/catalogue/operator_example.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

using Types = std::vector<DataType>;
constexpr DataType f32 = DataType::float32, f16 = DataType::float16, i64 = DataType::int64,
                   i32 = DataType::int32;

std::string problem_of(Kernel kernel, const Types& reads, const Types& writes,
                       std::optional<KernelDevice> device = std::nullopt) {
  return call_problem(kernel, {reads, writes}, device).value_or("");
}

Types types_of(const std::vector<TensorView>& views) {
  Types types;
  for (const TensorView& view : views) types.push_back(view.type);
  return types;
}

void check_calls(const ModelGraph& model, Mode mode) {
  const auto graph = testing::lowered(model, {.kernels = KernelSet::stowage, .mode = mode});
  for (const KernelNode& node : graph->nodes) {
    CAPTURE(node.name);
    CHECK(problem_of(node.kernel, types_of(node.reads), types_of(node.writes)) == "");
  }
}

}  // namespace

TEST_CASE("a signature is read into arguments") {
  const KernelSignature s = signature("x, h0, [c0], w..., mask: mask, [dh, [dc]] -> x");
  REQUIRE(s.reads.all().size() == 7);
  CHECK(s.reads.text == "x, h0, [c0], w..., mask: mask, [dh, [dc]]");
  CHECK(s.reads.all()[0].name == "x");
  CHECK(s.reads.all()[0].type == ArgumentType::own);
  CHECK(s.reads.all()[2].name == "c0");
  CHECK(s.reads.all()[2].skips_to == 3);
  CHECK(s.reads.all()[3].name == "w");
  CHECK(s.reads.all()[3].repeats);
  CHECK(s.reads.all()[4].type == ArgumentType::mask);
  CHECK(s.reads.all()[5].skips_to == 7);
  CHECK(s.reads.all()[6].name == "dc");
  CHECK(s.reads.all()[6].skips_to == 7);
  REQUIRE(s.writes.all().size() == 1);
  CHECK(signature(" -> y").reads.all().empty());
}

TEST_CASE("a signature says which result may lie where an argument does") {
  const KernelSignature s = signature("a, b, [w] -> y over a or b, z: mask, v over b");
  CHECK(s.writes.all()[0].name == "y");
  CHECK(s.writes.all()[0].over == 0b11);
  CHECK(s.writes.all()[1].over == 0);
  CHECK(s.writes.all()[1].type == ArgumentType::mask);
  CHECK(s.writes.all()[2].over == 0b10);
  CHECK(may_write_over(Kernel::relu_backward, 0, 1));
  CHECK_FALSE(may_write_over(Kernel::relu_backward, 0, 0));
  CHECK_FALSE(may_write_over(Kernel::relu_backward, 1, 1));
  CHECK_FALSE(may_write_over(Kernel::accumulate, 0, 0));
  CHECK_FALSE(may_write_over(Kernel::foreign, 0, 0));
  CHECK(updates_arguments(Kernel::accumulate));
  CHECK(updates_arguments(Kernel::batch_norm_forward));
  CHECK_FALSE(updates_arguments(Kernel::relu_backward));
}

TEST_CASE("a malformed signature is refused; in the table it does not compile") {
  for (const char* const text : {"x, y", "x: tensor -> y", "[x -> y", "x] -> y", "x, , w -> y",
                                 "x -> y over z", "[w], x -> y over x", "x..., z -> y over z"}) {
    CAPTURE(text);
    CHECK_THROWS(static_cast<void>(signature(text)));
  }
}

TEST_CASE("a call has as many arguments as its kernel's signature") {
  CHECK(problem_of(Kernel::linear_forward, {f32, f32}, {f32}) == "");
  CHECK(problem_of(Kernel::linear_forward, {f32, f32, f32}, {f32}) == "");
  CHECK(problem_of(Kernel::linear_forward, {f32}, {f32}) ==
        "reads 1 tensor where it takes x, w, [b]");
  CHECK(problem_of(Kernel::linear_forward, {f32, f32, f32, f32}, {f32}) ==
        "reads 4 tensors where it takes x, w, [b]");
  CHECK(problem_of(Kernel::linear_forward, {f32, f32}, {}) == "writes 0 tensors where it takes y");
  CHECK(problem_of(Kernel::fill, {f32}, {f32}) == "reads 1 tensor where it takes none");
  CHECK(problem_of(Kernel::concatenate, {f32, f32, f32, f32, f32}, {f32}) == "");
  CHECK(problem_of(Kernel::concatenate, {}, {f32}) == "reads 0 tensors where it takes x...");
}

TEST_CASE("arguments in brackets stand together, or none of them does") {
  const Types five(5, f32), four(4, f32), three(3, f32);
  CHECK(problem_of(Kernel::batch_norm_inference, three, {f32}) == "");
  CHECK(problem_of(Kernel::batch_norm_inference, five, {f32}) == "");
  CHECK(problem_of(Kernel::batch_norm_inference, four, {f32}) ==
        "reads 4 tensors where it takes x, [w, b], mean, var");
  // x, h0, [c0], w..., y, reserve, dy, [dhn, [dcn]]: the reserve tells where the weights end.
  const DataType u8 = DataType::uint8;
  const Types results(5, f32);
  CHECK(problem_of(Kernel::rnn_backward, {f32, f32, f32, f32, f32, u8, f32}, results) == "");
  CHECK(problem_of(Kernel::rnn_backward, {f32, f32, f32, f32, f32, u8, f32, f32, f32}, results) ==
        "");
  CHECK(problem_of(Kernel::rnn_backward, {f32, f32, f32, f32, f32, f32, f32}, results) ==
        "reads 7 tensors where it takes x, h0, [c0], w..., y, reserve: bytes, dy, [dhn, [dcn]]");
}

TEST_CASE("an argument has a type that its kernel takes, in a step and on the host") {
  CHECK(problem_of(Kernel::embedding_forward, {f16, f16}, {f16}) ==
        "reads float16 as 'indices' where it takes int64, int32, uint8, bool");
  CHECK(problem_of(Kernel::embedding_forward, {i64, f16}, {f16}) == "");
  CHECK(problem_of(Kernel::embedding_forward, {i64, f16}, {f16}, KernelDevice::host) == "");
  CHECK(problem_of(Kernel::embedding_forward, {i32, f16}, {f16}, KernelDevice::host) ==
        "reads int32 as 'indices' where it takes int64");
  CHECK(problem_of(Kernel::dropout_forward, {f32}, {f32, f32}) ==
        "writes float32 as 'mask' where it takes bool, uint8");
  CHECK(problem_of(Kernel::add, {i64, i64}, {i64}, KernelDevice::host) == "");
  CHECK(problem_of(Kernel::foreign, {f16}, {}) == "");
  const Types narrow{i32, f16}, out{f16};
  CHECK(unsupported_type(Kernel::embedding_forward, {narrow, out}, KernelDevice::host) == i32);
}

TEST_CASE("rows stand in the order of the enumerators, and names are found") {
  REQUIRE(kernel_table().size() == static_cast<std::size_t>(kernel_count));
  for (int i = 0; i < kernel_count; ++i) {
    const KernelRow& row = kernel_table()[static_cast<std::size_t>(i)];
    CHECK(row.kernel == static_cast<Kernel>(i));
    CHECK(find_kernel(row.name) == row.kernel);
    CHECK(to_string(row.kernel) == row.name);
  }
  CHECK(!find_kernel("foreign"));
  CHECK(to_string(Kernel::foreign) == "foreign");
}

TEST_CASE("every operator's calls keep to their kernels' signatures") {
  for (const OperatorRow& row : operator_catalogue()) {
    CAPTURE(row.name);
    const ModelGraph model = testing::described(example_description(row));
    check_calls(model, Mode::train);
    check_calls(model, Mode::inference);
  }
}

}  // namespace stowage
