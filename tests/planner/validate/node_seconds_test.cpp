// The seconds of a node as the validator computes them are the planner's, and the validator notices
// a plan whose rates are not those that its times were made of.
#include "planner/validate/node_seconds.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "planner/problem/rates.hpp"
#include "planner/validate/checks.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/resident_plan.hpp"

namespace stowage {
namespace {

Card lab_card() {
  Card card;
  card.compute_capability = 8.0;
  card.sm_count = 20;
  card.fp32_flops = 2e12;
  card.tf32_flops = 8e12;
  card.fp16_flops = 16e12;
  card.memory_bandwidth = 2e11;
  return card;
}

const std::string network = R"(model: network
inputs:
  image: {shape: [batch, 8, 30, 30]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: first, channels: 48, kernel: 3, padding: 1}
  - batch_norm: {name: norm}
  - relu
  - conv2d: {name: apart, channels: 48, kernel: 3, groups: 48}
  - flatten
  - linear: {name: fc, features: 70}
loss:
  cross_entropy: {from: [fc, label]}
)";

/// A plan with everything on the GPU, at the card's rates.
Plan plan_at(const Rates& rates) {
  TwoEngines source(512_B);
  Plan plan = resident_plan(network, 16, source);
  plan.machine = gpu_and_host(rates);
  double nodes = 0, copies = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    nodes += gpu_seconds(rates, plan.step, NodeId::of(i));
  }
  for (const Transfer& transfer : plan.transfers) {
    copies += h2d_seconds(rates, plan.bytes(transfer.storage));
  }
  PlanTotals& totals = plan.totals;
  totals.cost_seconds = totals.step_seconds = nodes + copies;
  totals.all_gpu_cost_seconds = nodes + copies;
  // The image is uploaded before the first node, the label beside it.
  totals.all_gpu_step_seconds =
      nodes + h2d_seconds(rates, plan.bytes(plan.transfers.front().storage));
  totals.cost_lower_bound_seconds = nodes + copies;
  return plan;
}

Rates lab_rates() {
  Rates rates = make_rates(lab_card(), {.cpu_flops = 1e9, .memory_bandwidth = 1e9});
  rates.h2d_bandwidth = rates.d2h_bandwidth = 1e10;
  return rates;
}

std::string failed_totals(const Plan& plan) {
  std::string failed;
  for (const Check& check : check_totals(plan)) {
    if (!check.passed) failed += check.name + "; ";
  }
  return failed;
}

}  // namespace

TEST_CASE("the validator counts each kernel's seconds as the planner does") {
  struct Case {
    const char* model;
    Precision precision;
    KernelSet kernels;
  };
  for (const Case& each : {Case{"resnet50", Precision::fp32, KernelSet::stowage},
                           Case{"mobilenet_v2", Precision::amp_fp16, KernelSet::pytorch},
                           Case{"resnext50_32x4d", Precision::bf16, KernelSet::pytorch},
                           Case{"bert-base", Precision::amp_bf16, KernelSet::stowage},
                           Case{"gpt2", Precision::fp16, KernelSet::pytorch},
                           Case{"lstm-lm", Precision::fp32, KernelSet::pytorch},
                           Case{"mlp", Precision::fp64, KernelSet::stowage}}) {
    CAPTURE(each.model);
    const ModelGraph model = testing::shipped(each.model, {.precision = each.precision});
    const LoweringSettings settings{.kernels = each.kernels, .optimizer = model.optimizer};
    Plan plan;
    plan.step = size_storages(testing::lowered(model, settings), 4).value();
    const Rates rates = lab_rates();
    plan.machine = gpu_and_host(rates);
    for (std::size_t i = 0; i < plan.step.graph->nodes.size(); ++i) {
      const double counted = node_seconds(plan, i, plan.machine.processor(gpu_processor));
      if (counted != doctest::Approx(gpu_seconds(rates, plan.step, NodeId::of(i))).epsilon(1e-12)) {
        FAIL_CHECK(plan.step.graph->nodes[i].name << ": " << counted);
      }
    }
  }
}

TEST_CASE("a plan whose seconds are those of its rates passes; changed rates are refused") {
  const Plan made = plan_at(lab_rates());
  CHECK(failed_totals(made) == "");
  using Change = void (*)(KernelRates&);
  const std::vector<std::pair<const char*, Change>> changes{
      {"tf32", [](KernelRates& kernels) { kernels.formats[2] *= 2; }},
      {"multiprocessors", [](KernelRates& kernels) { kernels.multiprocessors = 500; }},
      {"convolution", [](KernelRates& kernels) { kernels.kinds[0].arithmetic = 0.5; }},
      {"depthwise", [](KernelRates& kernels) { kernels.kinds[2].arithmetic = 0.5; }},
      {"product",
       [](KernelRates& kernels) { kernels.kinds[3] = {.arithmetic = 0.1, .bandwidth = 0.1}; }},
      {"normalization", [](KernelRates& kernels) { kernels.kinds[5].bandwidth = 1; }},
      {"pointwise", [](KernelRates& kernels) { kernels.kinds[6].bandwidth = 0.9; }}};
  for (const auto& each : changes) {
    CAPTURE(each.first);
    Plan plan = made;
    each.second(*plan.machine.processors[0].kernels);
    CHECK(failed_totals(plan).starts_with("cost; "));
  }
  // Without them every kernel would run at fp32's rate, unpadded.
  Plan plan = made;
  plan.machine.processors[0].kernels.reset();
  CHECK(failed_totals(plan) != "");
}

TEST_CASE("a rate that is no rate is refused") {
  Plan plan = plan_at(lab_rates());
  plan.machine.processors[0].kernels->kinds[4].bandwidth = -1;
  CHECK(check_structure(plan).detail == "processor 'gpu' cannot be");
}

}  // namespace stowage
