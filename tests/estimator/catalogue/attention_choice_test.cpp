// Which kernel attention runs in, against what PyTorch 2.15 itself takes on pretended cards
// (tests/reference/attention_choices.py).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

using namespace stowage;
using nlohmann::json;

namespace {

struct Call {
  double capability;
  std::int64_t heads, key_heads, queries, keys, features, value_features;
  std::string type;
  bool causal;
  double dropout;
  bool mask, gradient;
  std::string kernel;
};

Call call_of(const json& row) {
  return {std::stod(row[0].get<std::string>()),
          row[1],
          row[2],
          row[3],
          row[4],
          row[5],
          row[6],
          row[7],
          row[8],
          row[9],
          row[10],
          row[11],
          row[12]};
}

/// Heads that lie within positions, as a projection's output is seen.
std::string operand(const std::string& name, std::int64_t length, std::int64_t heads,
                    std::int64_t features) {
  return fmt::format(
      "  - linear: {{name: {0}_made, from: {0}_in, features: {2}}}\n"
      "  - reshape: {{name: {0}_split, from: {0}_made, shape: [batch, {1}, {3}, {4}]}}\n"
      "  - transpose: {{name: {0}, from: {0}_split, axes: [0, 2, 1, 3]}}\n",
      name, length, heads * features, heads, features);
}

std::string description(const Call& call) {
  std::string text = fmt::format(
      "model: one call\ninputs:\n  q_in: {{shape: [batch, {0}, 8]}}\n"
      "  k_in: {{shape: [batch, {1}, 8]}}\n  v_in: {{shape: [batch, {1}, 8]}}\n",
      call.queries, call.keys);
  if (call.mask) {
    text += fmt::format("  mask: {{shape: [batch, 1, {}, {}]}}\n", call.queries, call.keys);
  }
  text += "layers:\n" + operand("q", call.queries, call.heads, call.features) +
          operand("k", call.keys, call.key_heads, call.features) +
          operand("v", call.keys, call.key_heads, call.value_features);
  return text + fmt::format(
                    "  - scaled_dot_product_attention: {{name: attention, from: [q, k, v{}], "
                    "causal: {}, dropout: {}}}\n"
                    "loss:\n  mse: {{from: [attention, attention]}}\n",
                    call.mask ? ", mask" : "", call.causal, call.dropout);
}

ModelGraph model_of(const Call& call) {
  const Precision precision = call.type == "fp16"   ? Precision::fp16
                              : call.type == "bf16" ? Precision::bf16
                                                    : Precision::fp32;
  auto model =
      load_model(std::make_shared<const SourceText>(SourceText{"test.yaml", description(call)}),
                 {.precision = precision});
  if (!model) throw std::runtime_error(render(model.error()));
  return *std::move(model);
}

std::string kernel_of(const StepGraph& graph) {
  for (const KernelNode& node : graph.nodes) {
    if (node.kernel == Kernel::attention_forward) return node.attributes.text("implementation");
  }
  return "math";
}

}  // namespace

// As PyTorch 2.13.0 answers on a pretended card of 9.0; under 2.11.0 it was seen on an H100.
TEST_CASE("before PyTorch 2.14 no fused kernel of float32 takes key heads that are shared") {
  const auto kernel = [](std::string type, std::int64_t key_heads, bool takes_groups) {
    const Call call{9.0, 8, key_heads, 64, 64, 64, 64, std::move(type), true, 0, false, true, ""};
    const auto graph = testing::lowered(model_of(call), {.kernels = KernelSet::pytorch,
                                                         .mode = Mode::train,
                                                         .compute_capability = 9.0,
                                                         .efficient_takes_groups = takes_groups});
    return kernel_of(*graph);
  };
  CHECK(kernel("fp32", 2, false) == "math");
  CHECK(kernel("fp32", 2, true) == "efficient");
  CHECK(kernel("fp32", 8, false) == "efficient");
  CHECK(kernel("bf16", 2, false) == "cudnn");
}

TEST_CASE("attention runs in the kernel that PyTorch takes") {
  std::ifstream file(testing::source_path("/tests/reference/attention_choices.json"));
  const json rows = json::parse(file);
  CHECK(rows.size() >= 500);
  int cudnn = 0;
  for (const json& row : rows) {
    const Call call = call_of(row);
    CAPTURE(row.dump());
    const auto graph =
        testing::lowered(model_of(call), {.kernels = KernelSet::pytorch,
                                          .mode = call.gradient ? Mode::train : Mode::inference,
                                          .compute_capability = call.capability});
    CHECK(kernel_of(*graph) == call.kernel);
    if (call.kernel == "cudnn") ++cudnn;
  }
  CHECK(cudnn >= 100);
}
