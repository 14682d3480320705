#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "estimator/model/load_model.hpp"
#include "estimator/step/lower.hpp"
#include "tests/estimator/optimizer/lone_update.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

const std::vector<NamedShape> two_layers = {{"fc1.weight", {64, 64}}, {"fc1.bias", {10}}};

OptimizerSettings named(std::string_view name) {
  const auto settings = named_optimizer(name);
  REQUIRE(settings.has_value());
  return *settings;
}

std::string refusal(const OptimizerSettings& optimizer, KernelSet kernels = KernelSet::stowage) {
  const auto model = load_model(std::make_shared<const SourceText>(
      SourceText{"net.yaml",
                 "model: net\ninputs: {x: {shape: [batch, 4]}, t: {shape: [batch], dtype: int64}}\n"
                 "layers:\n  - linear: {name: fc, from: x, features: 3}\nloss: {cross_entropy: "
                 "{from: [fc, t]}}\n"}));
  if (!model) FAIL(render(model.error()));
  const auto graph = lower(*model, {.kernels = kernels, .optimizer = optimizer});
  return graph ? "" : render(graph.error());
}

}  // namespace

TEST_CASE("names are unique, and every setting of a row is in the table of settings") {
  const std::vector<std::string_view> names = optimizer_names();
  CHECK(std::set(names.begin(), names.end()).size() == names.size());
  for (const OptimizerRow& row : optimizer_table()) {
    CHECK_MESSAGE(!implementations(row).empty(), row.name);
    for (const SettingDefault& value : row.settings) {
      const OptimizerSetting* setting = find_setting(value.name);
      REQUIRE_MESSAGE(setting != nullptr, value.name);
      CHECK(value_of(default_settings(row), *setting) == value.value);
    }
    CHECK_MESSAGE(!problem_of(default_settings(row)), row.name);
  }
}

TEST_CASE("presets are rows under settings") {
  CHECK(named("momentum").name == "sgd");
  CHECK(named("momentum").momentum == 0.9);
  CHECK(named("nesterov").nesterov);
  CHECK(named("amsgrad").name == "adam");
  CHECK(named("amsgrad").amsgrad);
  CHECK(named("adamw").weight_decay == 0.01);
  CHECK(!named_optimizer("adamm"));
  CHECK(optimizer_text(named("sgd")) == "sgd");
  CHECK(optimizer_text(named("momentum")) == "sgd with momentum");
  CHECK(optimizer_text(named("nesterov")) == "sgd with Nesterov momentum");
  CHECK(optimizer_text(named("rmsprop-centered")) == "centered rmsprop");
  OptimizerSettings amsgrad = named("amsgrad");
  amsgrad.implementation = OptimizerImplementation::fused;
  CHECK(optimizer_text(amsgrad) == "adam with amsgrad, fused");
}

TEST_CASE("8-bit Adam: two bytes an element, a scale for 256 of them, small tensors in float32") {
  const StepGraph graph =
      lone_update(two_layers, DataType::bfloat16, named("adam8bit"), KernelSet::pytorch);
  const std::int64_t large = 2 * 4096 + 2 * 4 * (4096 / 256), small = 2 * 4 * 10,
                     maps = 2 * 256 * 4;
  CHECK(state_bytes(graph, false) == large + small + maps);
  CHECK(update_peak(graph, StepNumber::steady) == large + small + maps);
  const StepGraph all_small =
      lone_update({{"bias", {4095}}}, DataType::float32, named("adamw8bit"), KernelSet::pytorch);
  CHECK(state_bytes(all_small, false) == 2 * 4 * 4095);  // no map is made
}

TEST_CASE("a paged optimizer keeps the moments of large parameters in unified memory") {
  const std::vector<NamedShape> three{
      {"large", {1000, 100}}, {"middle", {99'999}}, {"small", {4095}}};
  const StepGraph wide =
      lone_update(three, DataType::bfloat16, named("paged_adamw_32bit"), KernelSet::pytorch);
  CHECK(wide.managed_state_bytes == 2 * 4 * 100'000);
  CHECK(state_bytes(wide, false) == 2 * 4 * (99'999 + 4095));
  CHECK(wide.host_state_bytes == 0);
  const StepGraph narrow =
      lone_update(three, DataType::bfloat16, named("paged_adamw_8bit"), KernelSet::pytorch);
  CHECK(narrow.managed_state_bytes == 2 * 100'000);
  // The maxima of 256 elements each, and the codes, are tensors as others are.
  CHECK(state_bytes(narrow, false) ==
        2 * 4 * 391 + 2 * (99'999 + 4 * 391) + 2 * 4 * 4095 + 2 * 256 * 4);
  const StepGraph lion =
      lone_update(three, DataType::bfloat16, named("paged_lion_8bit"), KernelSet::pytorch);
  CHECK(lion.managed_state_bytes == 100'000);
  CHECK(state_bytes(lion, false) == 4 * 391 + 99'999 + 4 * 391 + 4 * 4095 + 256 * 4);
}

TEST_CASE("a last block of fewer than 256 elements has a scale of its own") {
  const StepGraph graph =
      lone_update({{"w", {4097}}}, DataType::float32, named("adam8bit"), KernelSet::pytorch);
  CHECK(state_bytes(graph, false) == 2 * 4097 + 2 * 4 * 17 + 2 * 256 * 4);
}

TEST_CASE("master copies: float32 parameters and state under 16-bit ones, in one fused update") {
  OptimizerSettings adam = named("adam");
  adam.master_weights = MasterWeights::weights;
  const StepGraph graph = lone_update(two_layers, DataType::bfloat16, adam);
  const std::int64_t elements = 4096 + 10;
  // Parameter and gradient are 2 bytes each: 16 bytes a parameter; the fused kernel's step
  // counters.
  CHECK(state_bytes(graph, false) == 12 * elements + 2 * 4);
  CHECK(state_bytes(graph, true) == 4 * elements);  // the copies are made with the optimizer
  CHECK(update_peak(graph, StepNumber::steady) == state_bytes(graph, false));
  REQUIRE(graph.nodes.size() == 1);
  const KernelNode& node = graph.nodes[0];
  CHECK(graph.storage(node.writes[1].storage).name == "fc1.weight.master");
  CHECK(node.writes[1].type == DataType::float32);
  CHECK(graph.storage(node.writes[3].storage).name == "fc1.weight.exp_avg");
  CHECK(node.writes[3].type == DataType::float32);
  adam.implementation = OptimizerImplementation::foreach;
  CHECK(update_peak(lone_update(two_layers, DataType::bfloat16, adam), StepNumber::steady) ==
        16 * elements);  // and a float32 temporary of all of them
  adam.implementation = OptimizerImplementation::usual;
  CHECK(state_bytes(lone_update(two_layers, DataType::float32, adam), false) == 8 * elements + 8);
}

TEST_CASE("our own kernels keep no counters and take no temporaries") {
  for (const OptimizerRow& row : optimizer_table()) {
    if (!row.executable) continue;
    const StepGraph graph =
        lone_update(two_layers, DataType::float32, default_settings(row), KernelSet::stowage);
    CHECK_MESSAGE(graph.nodes.size() == two_layers.size(), row.name);
    for (const KernelNode& node : graph.nodes) {
      CHECK(node.temporaries.empty());
      CHECK(node.attributes.text("optimizer") == row.name);
    }
    CHECK(graph.host_state_bytes == 0);
  }
}

TEST_CASE("what is not there is refused, with what there is") {
  CHECK(refusal({.name = "adamm"}) ==
        "error: unknown optimizer 'adamm'\n  optimizers are sgd, adam, adamw, adagrad, rmsprop, "
        "adadelta, adamax, nadam, radam, adafactor, lion, lamb, adam8bit, adamw8bit, "
        "adafactor-transformers, paged_adamw_32bit, paged_adamw_8bit, paged_lion_32bit, "
        "paged_lion_8bit\n");
  CHECK(refusal({.nesterov = true}) ==
        "error: nesterov needs a momentum\n  momentum: 0.9 is usual\n");
  CHECK(refusal({.name = "lion", .implementation = OptimizerImplementation::fused},
                KernelSet::pytorch) ==
        "error: lion has no fused implementation\n  timm.optim.Lion has foreach, for-loop\n");
  CHECK(refusal({.name = "adam8bit"}) ==
        "error: the kernel set 'stowage' does not run adam8bit\n"
        "  use another optimizer, or use PyTorch's kernels\n");
  CHECK(refusal({.name = "adam8bit"}, KernelSet::pytorch) == "");
  CHECK(refusal({.name = "lamb"}) ==
        "error: the kernel set 'stowage' clips no gradients to a norm over all of them\n"
        "  give lamb `max_gradient_norm: 0`, or use PyTorch's kernels\n");
}

TEST_CASE("docs/model-description.md shows the optimizer table as it is") {
  std::ifstream stream(testing::source_path("/docs/model-description.md"));
  const std::string page{std::istreambuf_iterator<char>(stream), {}};
  const std::string begin = "<!-- optimizers -->\n", end = "<!-- /optimizers -->";
  const std::size_t at = page.find(begin);
  REQUIRE(at != std::string::npos);
  const std::size_t start = at + begin.size();
  CHECK(page.substr(start, page.find(end) - start) == optimizer_reference());
}

}  // namespace stowage
