// What of a node its time depends on: its kind, its format, and the matrix product that it is.
#include "estimator/memory/kernel_work.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "tests/support/described_model.hpp"

using namespace stowage;

namespace {

const std::string every_kind = R"(model: network
inputs:
  image: {shape: [batch, 32, 28, 28]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: plain, channels: 64, kernel: 3, padding: 1, stride: 2, bias: false}
  - conv2d: {name: grouped, channels: 64, kernel: 3, padding: 1, groups: 4, bias: false}
  - conv2d: {name: depthwise, channels: 64, kernel: 3, padding: 1, groups: 64, bias: false}
  - batch_norm: {name: norm}
  - relu: {name: act}
  - flatten
  - linear: {name: fc, features: 10, bias: false}
loss:
  cross_entropy: {from: [fc, label]}
)";

constexpr std::int64_t batch = 4;

std::shared_ptr<const StepGraph> lowered_in(const std::string& text,
                                            const LoweringSettings& settings, Precision precision) {
  const auto source = std::make_shared<const SourceText>(SourceText{"test.yaml", text});
  const auto model = load_model(source, {.precision = precision});
  REQUIRE(model);
  return testing::lowered(*model, settings);
}

/// "kind format rows x columns x depth * products", by node.
std::map<std::string, std::string> works(const std::string& text, const LoweringSettings& settings,
                                         Precision precision = Precision::fp32) {
  const auto step = size_storages(lowered_in(text, settings, precision), batch);
  REQUIRE(step);
  std::map<std::string, std::string> described;
  for (std::size_t i = 0; i < step->graph->nodes.size(); ++i) {
    const KernelWork work = kernel_work(*step, NodeId::of(i));
    CHECK(work.flops == step->flops[i]);
    CHECK(work.bytes == step->bytes_moved[i]);
    std::string line = fmt::format("{} {}", to_string(work.kind), to_string(work.format));
    if (work.rows > 0) {
      line += fmt::format(" {} x {} x {} * {}", work.rows, work.columns, work.depth, work.products);
    }
    described[step->graph->nodes[i].name] = line;
  }
  return described;
}

}  // namespace

TEST_CASE("a convolution is the matrix product of its direction") {
  auto found = works(every_kind, {.kernels = KernelSet::pytorch});
  // y is [4, 64, 14, 14]: 784 positions, 3136 of x.
  CHECK(found["plain.forward"] == "convolution tf32 784 x 64 x 288 * 1");
  CHECK(found["plain.backward.filter"] == "convolution tf32 64 x 288 x 784 * 1");
  CHECK(found["grouped.forward"] == "grouped-convolution tf32 784 x 16 x 144 * 4");
  CHECK(found["grouped.backward.data"] == "grouped-convolution tf32 784 x 16 x 144 * 4");
  CHECK(found["grouped.backward.filter"] == "grouped-convolution tf32 16 x 144 x 784 * 4");
}

TEST_CASE("a strided convolution's data gradient has the input's positions as rows") {
  const std::string two = R"(model: two
inputs:
  image: {shape: [batch, 32, 28, 28]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: first, channels: 32, kernel: 1, bias: false}
  - conv2d: {name: second, channels: 64, kernel: 3, padding: 1, stride: 2, bias: false}
  - flatten
  - linear: {name: fc, features: 10}
loss:
  cross_entropy: {from: [fc, label]}
)";
  auto found = works(two, {.kernels = KernelSet::pytorch});
  CHECK(found["second.backward.data"] == "convolution tf32 3136 x 32 x 576 * 1");
}

TEST_CASE("depthwise convolutions, normalizations and the rest are no matrix products") {
  auto found = works(every_kind, {.kernels = KernelSet::pytorch}, Precision::amp_fp16);
  CHECK(found["plain.forward"] == "convolution fp16 784 x 64 x 288 * 1");
  CHECK(found["depthwise.forward"] == "depthwise-convolution fp32");
  CHECK(found["depthwise.backward.filter"] == "depthwise-convolution fp32");
  CHECK(found["norm.forward"] == "normalization fp32");
  CHECK(found["norm.backward"] == "normalization fp32");
  CHECK(found["act.forward"] == "pointwise fp32");
  CHECK(found["fc.forward"] == "product fp16 4 x 10 x 12544 * 1");
}

TEST_CASE("TF32: convolutions by default, matrix products not") {
  LoweringSettings settings{.kernels = KernelSet::pytorch};
  auto found = works(every_kind, settings);
  CHECK(found["plain.forward"].starts_with("convolution tf32"));
  CHECK(found["fc.forward"] == "product fp32 4 x 10 x 12544 * 1");
  settings.convolutions.tf32 = false;
  found = works(every_kind, settings);
  CHECK(found["plain.forward"].starts_with("convolution fp32"));
  CHECK(works(every_kind, settings, Precision::fp64)["plain.forward"].starts_with(
      "convolution fp64"));
  CHECK(works(every_kind, settings, Precision::bf16)["fc.forward"].starts_with("product bf16"));
}

TEST_CASE("batched products stand side by side") {
  const std::string products = R"(model: products
inputs:
  a: {shape: [batch, 3, 5, 7]}
  b: {shape: [batch, 3, 7, 11]}
layers:
  - matmul: {name: both, from: [a, b]}
)";
  auto found = works(products, {.kernels = KernelSet::stowage, .mode = Mode::inference});
  CHECK(found["both.forward"] == "product fp32 5 x 11 x 7 * 12");
}

TEST_CASE("operands are reordered where channels do not lie innermost") {
  const auto reordered = [](TensorLayout layout) {
    LoweringSettings settings{.kernels = KernelSet::pytorch, .mode = Mode::inference};
    settings.step.layout = layout;
    const auto step = size_storages(lowered_in(every_kind, settings, Precision::fp32), batch);
    REQUIRE(step);
    double bytes = 0;
    for (std::size_t i = 0; i < step->graph->nodes.size(); ++i) {
      const KernelWork work = kernel_work(*step, NodeId::of(i));
      CHECK((work.reordered_bytes == 0 || work.reordered_bytes == work.bytes));
      bytes += work.reordered_bytes;
    }
    return bytes;
  };
  CHECK(reordered(TensorLayout::channels_last) == 0);
  // x, w and y of the plain convolution, then of the grouped one, in fp32.
  CHECK(reordered(TensorLayout::contiguous) == 4.0 * ((4 * 32 * 784 + 64 * 32 * 9 + 4 * 64 * 196) +
                                                      (4 * 64 * 196 + 64 * 16 * 9 + 4 * 64 * 196)));
}

TEST_CASE("an embedding reads the rows that it looks up, and at most its table") {
  const std::string text = R"(model: words
inputs:
  tokens: {shape: [batch, 8], dtype: int64}
layers:
  - embedding: {name: table, count: 1000, features: 64}
)";
  const auto graph =
      lowered_in(text, {.kernels = KernelSet::pytorch, .mode = Mode::inference}, Precision::fp32);
  const auto bytes_at = [&](std::int64_t samples) {
    const auto step = size_storages(graph, samples);
    REQUIRE(step);
    return step->bytes_moved[0];
  };
  const auto rows = [](double count) { return count * 64 * 4; };
  // The indices, the rows that are read, and those that are written.
  CHECK(bytes_at(1) == 8 * 8 + rows(8) + rows(8));
  CHECK(bytes_at(1000) == 8000 * 8 + rows(1000) + rows(8000));
}
