// Plans with pins: valid, whatever the proposal; the file keeps them; the validator sees a breach.
#include "tests/support/pinned_plans.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "planner/plan/plan_file.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

using testing::small_plans;

namespace {

std::string failed_checks(const Plan& plan) {
  const auto workspaces = rule_workspace_source(8.6);
  std::string failed;
  for (const Check& check : validate_plan(plan, *workspaces).checks) {
    if (!check.passed) failed += check.name + ": " + check.detail + "\n";
  }
  return failed;
}

Device device(const Plan& plan, std::string_view node) {
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.step.graph->nodes[i].name == node) return device_of(plan, plan.nodes[i]);
  }
  throw std::runtime_error("no node " + std::string(node));
}

std::int64_t uploads(const Plan& plan, std::string_view storage) {
  return std::ranges::count_if(plan.transfers, [&](const Transfer& transfer) {
    return direction_of(plan, transfer) == Direction::h2d &&
           plan.storage(transfer.storage).name == storage;
  });
}

Plan read_again(const Plan& plan) {
  auto read = read_plan(std::make_shared<const SourceText>(SourceText{"p", write_plan(plan)}));
  if (!read) FAIL(render(read.error()));
  return *std::move(read);
}

constexpr Bytes roomy = 64_MiB, tight = 3_MiB;

}  // namespace

TEST_CASE("every proposal keeps to the pins, with room and without") {
  const std::vector<std::vector<std::string>> cases{
      {"conv2.*=cpu"},
      {"class:parameter=cpu"},
      {"class:optimizer_state=cpu"},
      {"class:parameter=gpu", "class:optimizer_state=gpu"},
      {"op:relu=cpu", "class:activation=cpu"},
      {"*=cpu", "conv3=gpu"},
      {"image=gpu"},
      {"class:gradient=cpu", "update.*=gpu"},
      {"class:*=cpu"},
  };
  for (const auto& pins : cases) {
    for (const Bytes budget : {roomy, tight}) {
      CAPTURE(pins.front());
      CAPTURE(budget.count());
      const std::vector<Plan> plans = small_plans(budget, pins);
      CHECK(!plans.empty());
      for (const Plan& plan : plans) {
        CAPTURE(plan.name);
        CHECK(failed_checks(plan) == "");
        CHECK_FALSE(plan.pins.empty());
        const Plan again = read_again(plan);
        CHECK(again.pins.nodes == plan.pins.nodes);
        CHECK(again.pins.storages == plan.pins.storages);
        CHECK(again.pins.reasons == plan.pins.reasons);
        CHECK(write_plan(again) == write_plan(plan));
      }
    }
  }
}

TEST_CASE("a scope on the CPU computes there, its variables without a copy") {
  for (const Plan& plan : small_plans(roomy, {"conv2.*=cpu"})) {
    CAPTURE(plan.name);
    CHECK(device(plan, "conv2.forward") == Device::cpu);
    CHECK(device(plan, "update.conv2.weight") == Device::cpu);
    CHECK(device(plan, "conv1.forward") == Device::gpu);
    CHECK(uploads(plan, "conv2.weight") == 0);
  }
}

TEST_CASE("a parameter that lives on the CPU is uploaded for each kernel on the GPU") {
  for (const Plan& plan : small_plans(roomy, {"class:parameter=cpu", "update.*=cpu"})) {
    CAPTURE(plan.name);
    CHECK(uploads(plan, "conv2.weight") == 2);  // forward, backward of the data
  }
}

TEST_CASE("without pins nothing of a plan's file changes") {
  const Plan plan = small_plans(roomy).front();
  CHECK(write_plan(plan).find("pins") == std::string::npos);
  CHECK(plan.pins.empty());
}

TEST_CASE("the validator finds what is not where it is pinned to") {
  Plan plan = small_plans(roomy).front();  // all on the GPU
  plan.pins.reasons.push_back({PinReason::Kind::asked, "a=cpu"});
  plan.pins.nodes.resize(plan.nodes.size());
  plan.pins.storages.resize(plan.step.graph->storages.size());
  CHECK(failed_checks(plan) == "");
  const auto storage = [&](std::string_view name) {
    for (std::size_t i = 0; i < plan.pins.storages.size(); ++i) {
      if (plan.step.graph->storages[i].name == name) return i;
    }
    throw std::runtime_error("no such storage");
  };
  SUBCASE("a node") {
    plan.pins.nodes[0] = {Pin::cpu, 0};
    CHECK(failed_checks(plan).find("pins: 'conv1.forward' is on the GPU, but is pinned to the "
                                   "CPU") != std::string::npos);
  }
  SUBCASE("a storage that stays on the GPU") {
    plan.pins.storages[storage("conv1.weight")] = {Pin::cpu, 0};
    CHECK(failed_checks(plan).find("pins: 'conv1.weight' is pinned to the CPU, but stays on the "
                                   "GPU from 'conv1.forward' (step 0)") != std::string::npos);
  }
  SUBCASE("a storage that stays on the GPU, pinned there") {
    plan.pins.storages[storage("conv1.weight")] = {Pin::gpu, 0};
    CHECK(failed_checks(plan) == "");
  }
  SUBCASE("a reason that there is not") {
    plan.pins.nodes[0] = {Pin::gpu, 1};
    CHECK(failed_checks(plan).starts_with(
        "structure: the pins are not those of the step's nodes and storages"));
  }
}

TEST_CASE("the validator finds a storage that leaves the GPU against its pin") {
  std::vector<Plan> plans = small_plans(tight);
  const auto swaps = std::ranges::find_if(plans, [](const Plan& plan) {
    return std::ranges::any_of(plan.transfers, [&](const Transfer& transfer) {
      return plan.storage(transfer.storage).storage_class == StorageClass::activation;
    });
  });
  REQUIRE(swaps != plans.end());
  Plan& plan = *swaps;
  plan.pins.reasons.push_back({PinReason::Kind::asked, "class:activation=gpu"});
  plan.pins.nodes.resize(plan.nodes.size());
  plan.pins.storages.resize(plan.step.graph->storages.size());
  for (std::size_t i = 0; i < plan.pins.storages.size(); ++i) {
    if (plan.step.graph->storages[i].storage_class == StorageClass::activation) {
      plan.pins.storages[i] = {Pin::gpu, 0};
    }
  }
  CHECK(failed_checks(plan).find("is pinned to the GPU, but is not kept there from") !=
        std::string::npos);
}

TEST_CASE("a plan's table of pins is read with care") {
  const std::string text = write_plan(small_plans(roomy, {"conv2.*=cpu"}).front());
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    const auto plan = read_plan(std::make_shared<const SourceText>(SourceText{"p", changed}));
    return plan ? std::string("accepted") : plan.error().front().message;
  };
  CHECK(refusal("cpu 0 node conv2.forward", "tpu 0 node conv2.forward") ==
        "a pin is to cpu or gpu, not 'tpu'");
  CHECK(refusal("cpu 0 node conv2.forward", "cpu 1 node conv2.forward") ==
        "the pin's reason must be from 0 to 0");
  CHECK(refusal("cpu 0 node conv2.forward", "cpu 0 layer conv2.forward") ==
        "a pin is of a node or a storage, not 'layer'");
  CHECK(refusal("cpu 0 node conv2.forward", "cpu 0 node conv9.forward") ==
        "the step has no node 'conv9.forward'");
  CHECK(refusal("  cpu 0 node conv2.forward",
                "  cpu 0 node conv2.forward\n  cpu 0 node conv2.forward") ==
        "this is pinned twice");
  CHECK(refusal("pins: |", "# pins: |") == "the plan lacks the table 'pins'");
  CHECK(refusal("kind: asked", "kind: wished").find("'kind'") != std::string::npos);
}

TEST_CASE("pins that leave no room are a no that says what stays") {
  const auto workspaces = rule_workspace_source(8.6);
  const auto plans = make_plans(
      testing::small_request(512_KiB, {"class:activation=gpu", "class:optimizer_state=gpu"}),
      *workspaces, {.work = {5'000'000}});
  REQUIRE_FALSE(plans.has_value());
  const std::string why = render(plans.error());
  CHECK(why.find(" are kept there beside it") != std::string::npos);
  CHECK(why.find(", which is kept on the GPU, takes ") != std::string::npos);
}

}  // namespace stowage
