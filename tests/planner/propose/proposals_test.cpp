#include "planner/propose/proposals.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "estimator/document/make_document.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/step/saved_storages.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/explain/plan_words.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/problem/rates.hpp"
#include "planner/validate/validate_plan.hpp"

using namespace stowage;

namespace {

constexpr const char* small_network = R"(model: small
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
  - max_pool2d: {name: pool, kernel: 2}
  - flatten: {name: flat}
  - linear: {name: head, features: 10}
loss:
  cross_entropy: {from: [head, label]}
)";

Card small_card() {
  Card card = generic_card(64_MiB);
  return card;
}

Host small_host() {
  Host host;
  host.name = "test";
  host.cpu_flops = 1e11;
  host.memory_bandwidth = 2e10;
  host.pinned_limit = 1_GiB;
  return host;
}

PlanRequest request_for(Bytes budget) {
  const auto source = std::make_shared<const SourceText>(SourceText{"small.yaml", small_network});
  const auto model = load_model(source);
  if (!model) FAIL(render(model.error()));
  const ChosenStep step{.lowering = {.optimizer = {.name = "adam"}}};
  return {.document = make_document(*model, step, Runtime::stowage, {}, step_alone).value(),
          .description = source,
          .batch = WholeBatch(16),
          .card = small_card(),
          .host = small_host(),
          .budget = budget,
          .levers = {.operators = false},  // with it any budget has a plan
          .stowage_version = "test"};
}

Bytes least_all_gpu_peak(const PlanRequest& request, WorkspaceSource& workspaces) {
  const auto step = size_step(request.document.graph, request.batch.samples, workspaces);
  REQUIRE(step.has_value());
  const ResidencyProblem problem =
      make_problem(*step, make_rates(request.card, request.host), {.all_on_gpu = true});
  return evaluate(problem, all_gpu_placement(problem, 0_B)).peak;
}

const Plan* named(const std::vector<Plan>& plans, const std::string& name) {
  const auto found =
      std::find_if(plans.begin(), plans.end(), [&](const Plan& p) { return p.name == name; });
  return found == plans.end() ? nullptr : &*found;
}

void check_plan(const Plan& plan, Bytes budget) {
  CAPTURE(plan.name);
  auto workspaces = rule_workspace_source(8.6);
  const PlanValidation validation = validate_plan(plan, *workspaces);
  for (const Check& check : validation.checks) {
    CAPTURE(check.name);
    CAPTURE(check.detail);
    CHECK(check.passed);
  }
  const PlanTotals& totals = plan.totals;
  CHECK(totals.arena <= budget);
  CHECK(totals.gpu_peak <= totals.arena);
  CHECK(totals.pcie_lower_bound <= totals.h2d + totals.d2h);
  CHECK(totals.cost_lower_bound_seconds <= totals.cost_seconds);
  CHECK(totals.step_seconds <= totals.cost_seconds * (1 + 1e-9));
  const auto read =
      read_plan(std::make_shared<const SourceText>(SourceText{"plan", write_plan(plan)}));
  REQUIRE(read.has_value());
  CHECK(write_plan(*read) == write_plan(plan));
}

bool is_kept(StorageClass storage_class, const Levers& levers, bool saved) {
  switch (storage_class) {
    case StorageClass::parameter:
    case StorageClass::buffer:
      return !levers.weights;
    case StorageClass::optimizer_state:
    case StorageClass::gradient:
      return !levers.optimizer;
    default:
      return !levers.activations && !(levers.saved && saved);
  }
}

/// Storages that only nodes on the GPU use are copied at most once: an input, up.
void check_that_what_is_kept_stays(const Plan& plan, const Levers& levers) {
  const StepGraph& graph = *plan.step.graph;
  std::vector<bool> used_by_cpu(graph.storages.size(), false);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].processor != cpu_processor) continue;
    for (const TensorView& view : graph.nodes[i].reads) used_by_cpu[view.storage.index()] = true;
    for (const TensorView& view : graph.nodes[i].writes) used_by_cpu[view.storage.index()] = true;
  }
  const std::vector<bool> saved = kept_by_autograd(graph);
  std::vector<int> copies(graph.storages.size(), 0);
  for (const Transfer& transfer : plan.transfers) ++copies[transfer.storage.index()];
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const Storage& storage = graph.storages[i];
    if (used_by_cpu[i] || !is_kept(storage.storage_class, levers, saved[i])) continue;
    CAPTURE(storage.name);
    CHECK(copies[i] <= (storage.persistence == Persistence::from_host ? 1 : 0));
  }
}

}  // namespace

TEST_CASE("a batch that divides into too many micro-batches only is answered at once") {
  PlanRequest request = request_for(1_MiB);
  request.batch = WholeBatch(999'999'937);  // a prime
  const auto source = rule_workspace_source(8.6);
  const auto plans = make_plans(request, *source);
  REQUIRE(!plans);
  CHECK(plans.error().front().message.starts_with("a budget of 1.0 MiB is below the "));
}

TEST_CASE("where everything fits, the first proposal keeps everything on the GPU") {
  auto workspaces = rule_workspace_source(8.6);
  const auto plans = make_plans(request_for(1_GiB), *workspaces);
  if (!plans) FAIL(render(plans.error()));
  REQUIRE(plans->front().name == "all-gpu");
  CHECK(plans->front().totals.d2h == 0_B);
  CHECK(plans->front().totals.h2d == plans->front().totals.pcie_lower_bound);
  CHECK(named(*plans, "cheapest") != nullptr);
  CHECK(named(*plans, "min-pcie") != nullptr);
  CHECK(plans->size() == 3);
  for (const Plan& plan : *plans) {
    check_plan(plan, 1_GiB);
    CHECK(named(*plans, "cheapest")->totals.step_seconds <= plan.totals.step_seconds);
  }
}

TEST_CASE("within a budget every proposal passes the validator") {
  auto workspaces = rule_workspace_source(8.6);
  const auto whole = make_plans(request_for(1_GiB), *workspaces);
  if (!whole) FAIL(render(whole.error()));
  // Below this budget not everything stays, even with the engines of least workspace.
  const Bytes arena = least_all_gpu_peak(request_for(1_GiB), *workspaces);
  for (const int percent : {90, 75, 60}) {
    CAPTURE(percent);
    const Bytes budget(arena.count() / 100 * percent);
    const auto plans = make_plans(request_for(budget), *workspaces);
    REQUIRE(plans.has_value());
    CHECK(named(*plans, "all-gpu") == nullptr);
    for (const Plan& plan : *plans) check_plan(plan, budget);
    const Plan* fewest = named(*plans, "min-pcie");
    const Plan& parts = plans->back();
    REQUIRE(fewest != nullptr);
    CHECK(named(*plans, "cheapest")->totals.step_seconds <= fewest->totals.step_seconds);
    CHECK(fewest->totals.h2d + fewest->totals.d2h > whole->front().totals.h2d);
    CHECK(parts.name == fmt::format("micro-batch-{}", parts.step.graph->settings.micro_batches));
    // At 60 percent two parts swap a little, and are faster than the four that need not.
    CHECK(parts.step.graph->settings.micro_batches == 2);
    CHECK(whole_batch(parts) == WholeBatch(16));
    CHECK(plan_in_words(parts).starts_with("takes the batch in 2 parts of 8"));
    CHECK(plan_in_words(parts).find("segments") == std::string::npos);
    CHECK((parts.totals.h2d == whole->front().totals.h2d) == (percent > 60));
  }
}

TEST_CASE("no plan moves what the levers keep, whichever they are") {
  auto workspaces = rule_workspace_source(8.6);
  const Bytes arena = least_all_gpu_peak(request_for(1_GiB), *workspaces);
  int planned = 0;
  for (unsigned set = 1; set < 32; ++set) {
    PlanRequest request = request_for(Bytes(arena.count() / 100 * 75));
    request.levers = {.operators = (set & 1U) != 0,
                      .activations = (set & 2U) != 0,
                      .saved = (set & 16U) != 0,
                      .optimizer = (set & 4U) != 0,
                      .weights = (set & 8U) != 0,
                      .recompute = false};
    const std::string levers = to_string(request.levers);
    CAPTURE(levers);
    const auto plans = make_plans(request, *workspaces);
    if (!plans) continue;
    for (const Plan& plan : *plans) {
      check_plan(plan, request.budget.bytes);
      ++planned;
      check_that_what_is_kept_stays(plan, request.levers);
    }
  }
  // Without activations or operators nothing helps here but micro-batches.
  CHECK(planned > 40);
}

TEST_CASE("a plan that moves more than it says is refused") {
  auto workspaces = rule_workspace_source(8.6);
  const Bytes arena = least_all_gpu_peak(request_for(1_GiB), *workspaces);
  auto plans = make_plans(request_for(Bytes(arena.count() / 100 * 75)), *workspaces);
  REQUIRE(plans.has_value());
  Plan plan = *named(*plans, "min-pcie");
  plan.levers.activations = plan.levers.saved = false;
  const PlanValidation validation = validate_plan(plan, *workspaces);
  for (const Check& check : validation.checks) {
    CAPTURE(check.name);
    CHECK(check.passed == (check.name != "placement"));
  }
  plan = plans->front();
  const auto update = std::ranges::find(plan.step.graph->nodes, Phase::update, &KernelNode::phase);
  plan.nodes[static_cast<std::size_t>(update - plan.step.graph->nodes.begin())].processor =
      cpu_processor;
  plan.levers.optimizer = false;
  const PlanValidation other = validate_plan(plan, *workspaces);
  CHECK(std::ranges::any_of(
      other.checks, [](const Check& check) { return check.name == "placement" && !check.passed; }));
}

TEST_CASE("a budget below every floor is refused with the operation that breaks it") {
  auto workspaces = rule_workspace_source(8.6);
  const auto plans = make_plans(request_for(4_KiB), *workspaces);
  REQUIRE(!plans.has_value());
  CHECK(render(plans.error()) ==
        "error: a budget of 4.0 KiB is below the 1.5 MiB that 'relu3.backward' alone needs on the "
        "GPU\n"
        "note: 'relu3' takes 512.0 KiB\n"
        "note: 'pool.grad_input' takes 512.0 KiB\n"
        "note: 'relu3.grad_input' takes 512.0 KiB\n");
}

TEST_CASE("the same request gives the same plans") {
  auto workspaces = rule_workspace_source(8.6);
  const auto first = make_plans(request_for(2_MiB), *workspaces);
  const auto second = make_plans(request_for(2_MiB), *workspaces);
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  REQUIRE(first->size() == second->size());
  for (std::size_t i = 0; i < first->size(); ++i) {
    CHECK(write_plan((*first)[i]) == write_plan((*second)[i]));
  }
}

TEST_CASE("a step that does not say how it repeats is planned whole, whatever its batch") {
  PlanRequest request = request_for(64_MiB);
  StepGraph graph = *request.document.graph;
  graph.micro_batch = {};
  request.document.graph = std::make_shared<const StepGraph>(std::move(graph));
  request.batch = WholeBatch(999'999'937);  // has no divisor
  request.budget = 1_MiB;
  const auto workspaces = rule_workspace_source(8.6);
  const auto plans = make_plans(request, *workspaces);
  REQUIRE_FALSE(plans.has_value());
  CHECK(render(plans.error()).find("alone needs on the GPU") != std::string::npos);
}

TEST_CASE("what stays for the whole step and is made anew in it need not be there at its start") {
  PlanRequest request = request_for(64_MiB);
  StepGraph graph = *request.document.graph;
  int persistent = 0;
  for (Storage& storage : graph.storages) {
    if (storage.storage_class != StorageClass::activation) continue;
    storage.persistence = Persistence::persistent;
    ++persistent;
  }
  REQUIRE(persistent > 0);
  request.document.graph = std::make_shared<const StepGraph>(std::move(graph));
  const auto workspaces = rule_workspace_source(8.6);
  for (const Bytes budget : {64_MiB, 6_MiB}) {
    request.budget = budget;
    const auto plans = make_plans(request, *workspaces);
    REQUIRE(plans.has_value());
    for (const Plan& plan : *plans) check_plan(plan, budget);
  }
}

TEST_CASE("with hardly any work there are plans all the same, and they are valid") {
  auto workspaces = rule_workspace_source(8.6);
  for (const std::int64_t work : {1, 1'000, 10'000}) {
    for (const Bytes budget : {900_KiB, 2_MiB, 64_MiB}) {
      CAPTURE(work);
      CAPTURE(budget.count());
      PlanRequest request = request_for(budget);
      request.levers.operators = true;
      const auto plans = make_plans(request, *workspaces, {.work = {work}});
      REQUIRE(plans.has_value());
      REQUIRE_FALSE(plans->empty());
      for (const Plan& plan : *plans) check_plan(plan, budget);
    }
  }
}
