// Plans of a small network, with pins, for tests of what is made of plans.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "estimator/document/make_document.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/propose/proposals.hpp"
#include "tests/support/described_model.hpp"

namespace stowage::testing {

inline constexpr const char* small_network = R"(model: small
inputs:
  image: {shape: [batch, 16, 16, 16]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: conv1, channels: 32, kernel: 3, padding: 1}
  - relu: {name: relu1}
  - conv2d: {name: conv2, channels: 32, kernel: 3, padding: 1}
  - relu: {name: relu2}
  - conv2d: {name: conv3, channels: 32, kernel: 3, padding: 1}
  - relu: {name: relu3}
  - flatten: {name: flat}
  - linear: {name: head, features: 10}
loss:
  cross_entropy: {from: [head, label]}
)";

inline PinRequest pins_of(const std::vector<std::string>& texts) {
  PinRequest request;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    auto pin = parse_device_pin(text.substr(0, equals), text.substr(equals + 1));
    if (!pin) throw std::runtime_error(render(pin.error()));
    request.pins.push_back(*std::move(pin));
  }
  return request;
}

inline PlanRequest small_request(Bytes budget, const std::vector<std::string>& pins = {}) {
  const ChosenStep step{.lowering = {.optimizer = {.name = "adam"}}};
  Host host;
  host.name = "test";
  host.cpu_flops = 1e11;
  host.memory_bandwidth = 2e10;
  host.pinned_limit = 1_GiB;
  return {
      .document =
          make_document(described(small_network), step, Runtime::stowage, {}, step_alone).value(),
      .batch = WholeBatch(16),
      .card = generic_card(64_MiB),
      .host = host,
      .budget = budget,
      .pins = pins_of(pins),
      .stowage_version = "test"};
}

inline std::vector<Plan> small_plans(Bytes budget, const std::vector<std::string>& pins = {}) {
  const auto workspaces = rule_workspace_source(8.6);
  const auto plans = make_plans(small_request(budget, pins), *workspaces,
                                {.work = {60'000'000}, .target_gap = 0.05});
  if (!plans) throw std::runtime_error(render(plans.error()));
  return *plans;
}

}  // namespace stowage::testing
