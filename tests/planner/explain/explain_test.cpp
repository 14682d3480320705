#include <doctest/doctest.h>

#include <algorithm>

#include "planner/explain/alternatives.hpp"
#include "planner/explain/compare_plans.hpp"
#include "planner/explain/find_name.hpp"
#include "planner/explain/placement_log.hpp"
#include "tests/support/hand_made_plan.hpp"
#include "tests/support/pinned_plans.hpp"

namespace stowage {

using testing::small_plans;

namespace {

constexpr Bytes roomy = 64_MiB, tight = 3_MiB;

PlannedProblem planned(const Plan& plan) {
  auto found = planned_problem(plan);
  if (!found) FAIL(render(found.error()));
  return *std::move(found);
}

StorageId storage(const Plan& plan, std::string_view name) {
  const auto& storages = plan.step.graph->storages;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    if (storages[i].name == name) return StorageId::of(i);
  }
  throw std::runtime_error("no storage " + std::string(name));
}

NodeId node(const Plan& plan, std::string_view name) {
  const auto& nodes = plan.step.graph->nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].name == name) return NodeId::of(i);
  }
  throw std::runtime_error("no node " + std::string(name));
}

Selection operation(const Plan& plan, std::string_view name) {
  return {.operations = {static_cast<std::int32_t>(node(plan, name).index())}};
}
Selection item(const Plan& plan, const PlannedProblem& of, std::string_view name) {
  return {.items = {of.item_of[storage(plan, name).index()]}};
}

}  // namespace

TEST_CASE("a plan's tables are a placement that costs what its totals say") {
  for (const Bytes budget : {roomy, tight}) {
    for (const auto& pins : std::vector<std::vector<std::string>>{
             {}, {"conv2.*=cpu"}, {"class:parameter=cpu"}, {"class:activation=gpu"}}) {
      if (budget == tight && !pins.empty() && pins.front() == "class:activation=gpu") continue;
      for (const Plan& plan : small_plans(budget, pins)) {
        CAPTURE(plan.name);
        const PlannedProblem of = planned(plan);
        CHECK(of.evaluation.cost_seconds == doctest::Approx(plan.totals.cost_seconds));
        CHECK(of.evaluation.h2d_bytes == plan.totals.h2d);
        CHECK(of.evaluation.peak <= plan.totals.arena_lower_bound);
      }
    }
  }
}

TEST_CASE("the hand-made plan: where its storages are") {
  const Plan made = hand_made::plan();
  const PlannedProblem of = planned(made);
  CHECK(of.evaluation.cost_seconds == 26.5);
  const auto state = [&](std::string_view name) {
    return to_string(state_of(of, storage(made, name)));
  };
  CHECK(state("x") == "gpu");
  CHECK(state("w1") == "gpu");
  CHECK(state("y1") == "swapped");
  CHECK(state("w2") == "gpu");  // comes from the CPU, which has updated it
  CHECK(state("scratch") == "unused");
}

TEST_CASE("the hand-made plan: what its alternatives cost, worked out on paper") {
  const Plan made = hand_made::plan();
  const PlannedProblem of = planned(made);
  // y1 stays: neither 4.5 s down nor 4.5 s up.
  const AddedCost kept = added_cost(of, item(made, of, "y1"), Alternative::kept);
  CHECK(kept.seconds == doctest::Approx(-9));
  CHECK(kept.h2d_bytes == -1024);
  CHECK(kept.d2h_bytes == -1024);
  // w1 leaves: never written, so that it costs an upload of 2.5 s.
  CHECK(added_cost(of, item(made, of, "w1"), Alternative::swapped).seconds == doctest::Approx(2.5));
  // The update on the GPU: dw2 no longer goes down (3.5 s), and w2 stays there (3.5 s up).
  const AddedCost update = added_cost(of, operation(made, "update.w2"), Alternative::on_gpu);
  CHECK(update.seconds == doctest::Approx(-7));
  CHECK(update.h2d_bytes == -768);
  CHECK(update.d2h_bytes == -768);
  // fc1 on the CPU: x is not uploaded (1.5 s); y1 is there, so not downloaded (4.5 s), but is
  // uploaded for fc2 (4.5 s).
  CHECK(added_cost(of, operation(made, "fc1.forward"), Alternative::on_cpu).seconds ==
        doctest::Approx(-1.5));
  CHECK(added_cost(of, operation(made, "loss"), Alternative::as_planned).seconds == 0);
}

TEST_CASE("the hand-made plan: reasons") {
  Plan made = hand_made::plan();
  const PlannedProblem of = planned(made);
  const auto of_node = [&](std::string_view name) {
    return in_words(reason_of(made, of, node(made, name)));
  };
  const auto of_storage = [&](std::string_view name) {
    return in_words(reason_of(made, of, storage(made, name)));
  };
  // The GPU has memory for neither of them; then for both.
  made.inputs.budget = Bytes();
  CHECK(of_node("update.w2") == "budget: 7 s cheaper on the GPU, if there were room");
  CHECK(of_node("fc1.forward") ==
        "1.5 s cheaper on the CPU, which the search left, or gave up for a shorter step");
  CHECK(of_storage("y1") == "budget: 9 s cheaper kept on the GPU, if there were room");
  made.inputs.budget = 1_MiB;
  CHECK(of_node("update.w2") ==
        "7 s cheaper on the GPU, which the search left, or gave up for a shorter step");
  CHECK(of_storage("y1") ==
        "9 s cheaper kept on the GPU, which the search left, or gave up for a shorter step");
  CHECK(of_storage("w1") == "cheaper by 2.5 s than swapped");
  CHECK(of_storage("x") == "the GPU wants it once");
  made.pinned = Pinned::computation;
  CHECK(of_node("fc1.forward") == "the plan computes on the GPU, though 1.5 s cheaper on the CPU");
  made.pins.reasons = {{PinReason::Kind::asked, "fc2.*=gpu"},
                       {PinReason::Kind::no_gpu_kernel, "it has none"}};
  made.pins.nodes.resize(5);
  made.pins.nodes[1] = {Pin::gpu, 0};
  made.pins.nodes[4] = {Pin::cpu, 1};
  CHECK(of_node("fc2.forward") == "pinned by 'fc2.*=gpu'");
  CHECK(of_node("update.w2") == "no GPU kernel: it has none");
}

TEST_CASE("an alternative's added cost is what the whole problem says") {
  for (const Plan& plan : small_plans(tight)) {
    CAPTURE(plan.name);
    const PlannedProblem of = planned(plan);
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
      const Selection alone{.operations = {static_cast<std::int32_t>(i)}};
      for (const AlternativeCost& cost : alternative_costs(of, alone)) {
        const AddedCost added = added_cost(of, alone, cost.alternative);
        REQUIRE(cost.cost_seconds == doctest::Approx(of.evaluation.cost_seconds + added.seconds));
        REQUIRE(cost.h2d_bytes.count() == of.evaluation.h2d_bytes.count() + added.h2d_bytes);
      }
    }
  }
}

TEST_CASE("in a plan of minimum cost nothing is cheaper where there is room") {
  const std::vector<Plan> plans = small_plans(roomy);
  const auto cheapest = std::ranges::find(plans, "cheapest", &Plan::name);
  REQUIRE(cheapest != plans.end());
  const PlannedProblem of = planned(*cheapest);
  for (std::size_t i = 0; i < of.item_of.size(); ++i) {
    if (of.item_of[i] < 0) continue;
    const PlacementReason reason = reason_of(*cheapest, of, StorageId::of(i));
    CHECK(reason.cause != PlacementCause::budget);
  }
}

TEST_CASE("a plan that is not valid has no placement") {
  Plan made = hand_made::plan();
  made.totals.h2d = 1_B;
  const auto found = planned_problem(made);
  REQUIRE_FALSE(found.has_value());
  CHECK(found.error().front().message ==
        "the plan is not valid: its copies carry 2.0 KiB up and 1.8 KiB down, its totals "
        "say 1 B and 1.8 KiB");
}

TEST_CASE("names: layers before kernels and storages, scopes, suggestions") {
  const Plan plan = small_plans(roomy).front();
  const auto counts = [&](std::string_view name) {
    const auto found = find_name(plan, name);
    if (!found) return render(found.error());
    return std::string(found->is_scope ? "scope " : "") + std::to_string(found->nodes.size()) +
           " " + std::to_string(found->storages.size());
  };
  CHECK(counts("conv1.forward") == "1 0");
  CHECK(counts("conv1.weight") == "0 1");
  CHECK(counts("image") == "0 1");
  CHECK(counts("conv*.forward") == "3 0");
  const auto layer = find_name(plan, "conv1");
  REQUIRE(layer.has_value());
  CHECK(layer->is_scope);
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(layer->nodes,
                               [&](NodeId id) { return plan.kernel(id).name == name; });
  };
  CHECK(has("conv1.forward"));
  CHECK(has("update.conv1.weight"));
  CHECK_FALSE(has("update.conv2.weight"));
  CHECK(counts("conv1.fowrard") ==
        "error: nothing in this plan is called 'conv1.fowrard'\n"
        "  did you mean 'conv1.forward'?\n");
  CHECK(counts("").find("nothing in this plan is called ''") != std::string::npos);
  CHECK(counts(std::string(20'000, '*')).find("a name of 20000 bytes") != std::string::npos);
}

TEST_CASE("compare_plans: what moved, by how many bytes") {
  const Plan with_room = small_plans(roomy).front();
  const Plan pinned = small_plans(roomy, {"conv2.*=cpu"}).front();
  const auto same = compare_plans(with_room, with_room);
  REQUIRE(same.has_value());
  CHECK(same->same_step);
  CHECK(same->nodes.empty());
  CHECK(same->storages.empty());

  const auto found = compare_plans(with_room, pinned);
  REQUIRE(found.has_value());
  CHECK(found->same_step);
  const auto moved = std::ranges::find(found->nodes, "conv2.forward", &NodeChange::name);
  REQUIRE(moved != found->nodes.end());
  CHECK(moved->before.device == Device::gpu);
  CHECK(moved->after.device == Device::cpu);
  CHECK_FALSE(moved->before.engine.empty());
  CHECK(moved->after.engine.empty());
  const auto weight = std::ranges::find(found->storages, "conv2.weight", &StorageChange::name);
  REQUIRE(weight != found->storages.end());
  CHECK(weight->before == StoragePlace{StorageState::on_gpu, Bytes(), Bytes()});
  CHECK(weight->after == StoragePlace{StorageState::on_cpu, Bytes(), Bytes()});
  Bytes before, after;
  for (const StorageChange& change : found->storages) {
    before += change.before.h2d;
    after += change.after.h2d;
  }
  CHECK(after - before == pinned.totals.h2d - with_room.totals.h2d);

  const auto other = compare_plans(with_room, hand_made::plan());
  REQUIRE(other.has_value());
  CHECK_FALSE(other->same_step);
  CHECK(other->compared_nodes == 0);
  CHECK(other->nodes_only_after == 5);
}

}  // namespace stowage
