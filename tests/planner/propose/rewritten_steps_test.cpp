// Proposals that rewrite the step, and proposals that the memory of the host decides.
#include "planner/propose/rewritten_steps.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>

#include "planner/explain/plan_words.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/propose/frontier.hpp"
#include "tests/support/pinned_plans.hpp"
#include "tests/support/plan_mistakes.hpp"

namespace stowage {
namespace {

using testing::small_request;

const ProposalOptions patient{.work = {60'000'000}, .target_gap = 0.05};

/// A request of a step that computes on the GPU, and a case of it.
struct Asked {
  PlanRequest request;
  std::unique_ptr<WorkspaceSource> workspaces = rule_workspace_source(8.6);
  ProposalOptions options = patient;
  Planning planning;
  StepCase whole;

  explicit Asked(PlanRequest planned)
      : request(std::move(planned)),
        planning(request, *workspaces, options),
        whole(make_case(planning, planning.document.graph).value()) {}
};

PlanRequest on_gpu(Bytes budget) {
  PlanRequest request = small_request(budget);
  request.levers.operators = false;
  return request;
}

PlanRequest inference(Bytes budget) {
  PlanRequest request = on_gpu(budget);
  const ChosenStep step{.lowering = {.mode = Mode::inference}};
  request.document = make_document(testing::described(testing::small_network), step,
                                   Runtime::stowage, {}, step_alone)
                         .value();
  return request;
}

}  // namespace

TEST_CASE("a plan with early updates is valid, and its step says what it is") {
  Asked asked(on_gpu(3_MiB));
  const auto plan =
      best_of(asked.planning, early_updates_trials(asked.planning, asked.whole), Effort::full);
  REQUIRE(plan.has_value());
  CHECK(testing::plan_mistakes(*plan) == "");
  CHECK(plan->name == "early-updates");
  CHECK(plan->step.graph->settings.early_updates);
  CHECK(plan->totals.arena <= 3_MiB);
  CHECK(*plan->totals.step_lower_bound_seconds <= plan->totals.step_seconds);
  Asked infer(inference(3_MiB));
  CHECK(early_updates_trials(infer.planning, infer.whole).empty());
}

TEST_CASE("a plan that recomputes is valid, and says how much") {
  Asked asked(on_gpu(3_MiB));
  const auto plan = best_of(
      asked.planning, recompute_trials(asked.planning, asked.whole, Effort::full), Effort::full);
  REQUIRE(plan.has_value());
  CHECK(testing::plan_mistakes(*plan) == "");
  CHECK(plan->totals.arena <= 3_MiB);
  CHECK(plan->step.graph->nodes.size() > asked.whole.step.graph->nodes.size());
  CHECK_FALSE(plan->step.graph->settings.recomputed.empty());
  CHECK(plan_in_words(*plan).find(" of the forward pass again in backward") != std::string::npos);
}

TEST_CASE("the batch of an inference is chunked without being asked") {
  // Half of what one image's activations need sixteen times over.
  Asked whole(inference(64_MiB));
  const Bytes least = memory_floor(whole.whole.on_gpu).bytes;
  Asked asked(inference(Bytes(least.count() / 2)));
  const auto plan = parts_plan(asked.planning, asked.whole);
  REQUIRE(plan.has_value());
  CHECK(testing::plan_mistakes(*plan) == "");
  const int parts = plan->step.graph->settings.micro_batches;
  CHECK(parts >= 2);
  CHECK(plan->name == "chunk-" + std::to_string(parts));
  CHECK(plan->remarks.empty());
  CHECK(whole_batch(*plan) == WholeBatch(16));
  const auto all = make_plans(asked.request, *asked.workspaces, patient);
  REQUIRE(all.has_value());
  CHECK(std::ranges::any_of(*all, [](const Plan& one) { return one.name.starts_with("chunk-"); }));
}

TEST_CASE("state that the CPU updates takes pageable memory, and no pinned one") {
  // The link is so slow that only what has to crosses it, and the budget so small that the state
  // does not fit on the GPU.
  PlanRequest request = on_gpu(3_MiB);
  request.host.h2d_bandwidth = request.host.d2h_bandwidth = 1e8;
  request.host.cpu_flops = 1e12;
  request.host.memory_bandwidth = 1e12;
  Asked asked(request);
  const auto plan = cheapest_plan(asked.planning, asked.whole);
  REQUIRE(plan.has_value());
  REQUIRE(computes_on_cpu(*plan));
  CHECK(plan->totals.pageable_peak > 0_B);
  for (const Residence& residence : residences_in(*plan, MemoryKind::pageable)) {
    for (const Transfer& transfer : plan->transfers) CHECK(transfer.storage != residence.storage);
  }
}

TEST_CASE("a host that cannot pin what a plan copies gets a remark, unless another plan is found") {
  PlanRequest request = on_gpu(3_MiB);
  Asked roomy(request);
  const auto free = cheapest_plan(roomy.planning, roomy.whole);
  REQUIRE(free.has_value());
  REQUIRE(free->totals.host_peak > 64_KiB);
  CHECK(free->remarks.empty());
  request.host.pinned_limit = 1_KiB;
  Asked poor(request);
  const auto plan = cheapest_plan(poor.planning, poor.whole);
  REQUIRE(plan.has_value());
  CHECK(plan->totals.host_peak <= free->totals.host_peak);
  CHECK_FALSE(host_holds(request.host, plan->totals));  // the inputs alone are more
  REQUIRE(plan->remarks.size() == 1);
  CHECK(plan->remarks.front().ends_with("of pinned host memory; 'test' allows 1.0 KiB"));
  request.host.pinned_limit = 1_GiB;
  request.host.memory = 2_KiB;
  CHECK(host_remarks(request.host, plan->totals).front().ends_with("'test' has 2.0 KiB"));
}

TEST_CASE("a host that holds less gets another plan, within its limits and not much longer") {
  const PlanRequest roomy_request = on_gpu(3_MiB);
  Asked roomy(roomy_request);
  const auto free = cheapest_plan(roomy.planning, roomy.whole);
  REQUIRE(free.has_value());
  double before = 0;
  for (const std::int64_t percent : {90, 80}) {
    CAPTURE(percent);
    PlanRequest request = roomy_request;
    request.host.pinned_limit = Bytes(free->totals.host_peak.count() / 100 * percent);
    Asked poor(request);
    const auto plan = cheapest_plan(poor.planning, poor.whole);
    REQUIRE(plan.has_value());
    CHECK(plan->totals.host_peak <= request.host.pinned_limit);
    CHECK(plan->remarks.empty());
    CHECK(testing::plan_mistakes(*plan) == "");
    CHECK(plan->totals.arena <= request.budget.bytes);
    MESSAGE(percent, " percent: ", plan->totals.step_seconds, " s instead of ",
            free->totals.step_seconds);
    CHECK(plan->totals.step_seconds <= 1.5 * free->totals.step_seconds);
    CHECK(plan->totals.step_seconds >= 0.99 * before);
    before = plan->totals.step_seconds;
  }
}

TEST_CASE("limits of the host that do not bind change nothing") {
  const PlanRequest roomy_request = on_gpu(3_MiB);
  Asked roomy(roomy_request);
  const auto free = cheapest_plan(roomy.planning, roomy.whole);
  REQUIRE(free.has_value());
  PlanRequest request = roomy_request;
  request.host.pinned_limit = free->totals.host_peak;
  request.host.memory = free->totals.host_peak + free->totals.pageable_peak;
  Asked enough(request);
  const auto plan = cheapest_plan(enough.planning, enough.whole);
  REQUIRE(plan.has_value());
  CHECK(plan->totals.step_seconds == free->totals.step_seconds);
  CHECK(plan->totals.host_peak == free->totals.host_peak);
  CHECK(plan->transfers.size() == free->transfers.size());
  CHECK(plan->totals.cost_seconds == free->totals.cost_seconds);
}

TEST_CASE("steps that the host does not hold are ranked by memory times seconds") {
  Host host;
  host.pinned_limit = 1_GiB;
  const auto rank = [&](Bytes pinned, double seconds) {
    PlanTotals totals;
    totals.host_peak = pinned;
    return host_rank(host, totals, seconds);
  };
  CHECK(rank(1_GiB, 9) < rank(2_GiB, 1));  // held
  CHECK(rank(1_GiB, 1) < rank(1_KiB, 2));
  CHECK(rank(25_GiB, 5) < rank(20_GiB, 50));
  CHECK(rank(20_GiB, 5) < rank(200_GiB, 4));
  CHECK(rank(20_GiB, 5) < rank(21_GiB, 5));
}

TEST_CASE("a forecast says what the host lacks, and a step that it holds is searched first") {
  PlanRequest request = on_gpu(3_MiB);
  Asked roomy(request);
  Trials trials = early_updates_trials(roomy.planning, roomy.whole);
  REQUIRE(trials.size() == 1);
  CHECK_FALSE(trials[0].forecast.lacks);
  request.host.pinned_limit = 1_KiB;
  Asked poor(request);
  const Trials lacking = early_updates_trials(poor.planning, poor.whole);
  REQUIRE(lacking.size() == 1);
  CHECK(lacking[0].forecast.lacks);
  CHECK(lacking[0].forecast.value > 1024 * trials[0].forecast.value);
  // Of two trials of the same step, the one with the shorter forecast that needs more of the host
  // comes second.
  trials.push_back(trials[0]);
  trials[0].name = "held";
  trials[1].name = "lacking";
  trials[1].forecast = {true, trials[0].forecast.value / 2};
  const auto plan = best_of(roomy.planning, std::move(trials), Effort::quick);
  REQUIRE(plan.has_value());
  CHECK(plan->name == "held");
}

TEST_CASE("the frontier falls from the least budget to that of everything on the GPU") {
  const auto workspaces = rule_workspace_source(8.6);
  const PlanRequest request = on_gpu(64_MiB);
  const auto found = frontier(request, *workspaces, patient, {}, 6);
  REQUIRE(found.has_value());
  CHECK(found->left_out == 0);
  const std::vector<FrontierPoint>& points = found->points;
  REQUIRE(points.size() >= 3);
  for (std::size_t i = 1; i < points.size(); ++i) {
    CHECK(points[i].budget.bytes > points[i - 1].budget.bytes);
    CHECK(points[i].step_seconds <= points[i - 1].step_seconds);
    CHECK(points[i].step_lower_bound_seconds.value() <=
          points[i - 1].step_lower_bound_seconds.value());
  }
  for (const FrontierPoint& point : points) {
    CHECK(point.step_lower_bound_seconds.value() <= point.step_seconds * (1 + 1e-9));
  }
  CHECK(points.back().step_seconds <= 1.02 * Asked(request).whole.all_gpu.seconds);
}

TEST_CASE("a frontier that is stopped says how many budgets it left out") {
  const auto workspaces = rule_workspace_source(8.6);
  const PlanRequest request = on_gpu(64_MiB);
  const auto cancelled = frontier(request, *workspaces, {.cancelled = [] { return true; }}, {}, 6);
  REQUIRE(cancelled.has_value());
  CHECK(cancelled->points.empty());
  CHECK(cancelled->left_out == 6);
  std::atomic<int> polls = 0;
  const auto late = frontier(request, *workspaces,
                             {.work = {1}, .out_of_time = [&] { return ++polls > 2; }}, {}, 6);
  REQUIRE(late.has_value());
  CHECK(late->left_out > 0);
}

TEST_CASE("no point of a frontier has a longer step than a plan that is known") {
  const auto workspaces = rule_workspace_source(8.6);
  PlanRequest request = on_gpu(2_MiB);
  const auto plans = make_plans(request, *workspaces, patient);
  REQUIRE(plans.has_value());
  const auto found = frontier(request, *workspaces, {.work = {100}}, *plans, 8);
  REQUIRE(found.has_value());
  int compared = 0;
  for (const FrontierPoint& point : found->points) {
    for (const Plan& plan : *plans) {
      if (plan.totals.arena > point.budget.bytes) continue;
      ++compared;
      CHECK(point.step_seconds <= plan.totals.step_seconds);
    }
    CHECK(point.step_lower_bound_seconds.value() <= point.step_seconds);
  }
  CHECK(compared > 0);
}

TEST_CASE("operations run on the CPU where a plan may use that, and not where it may not") {
  PlanRequest request = small_request(64_KiB);
  const auto workspaces = rule_workspace_source(8.6);
  const auto anywhere = make_plans(request, *workspaces, patient);
  REQUIRE(anywhere.has_value());
  CHECK(computes_on_cpu(anywhere->front()));
  CHECK(anywhere->front().pinned == Pinned::nothing);
  for (const Plan& plan : *anywhere) CHECK(testing::plan_mistakes(plan) == "");
  request.levers.operators = false;
  CHECK_FALSE(make_plans(request, *workspaces, patient).has_value());
  request.levers.operators = true;
  request.host.cpu_flops = 0;  // nobody knows how long the CPU would take
  CHECK_FALSE(make_plans(request, *workspaces, patient).has_value());
}

}  // namespace stowage
