// Updates that move, as the recount of a plan for PyTorch knows them: as gradients come, and of
// some parameters on the CPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/planner/validate_pytorch/planned.hpp"

namespace stowage {

using testing::failed_checks;
using testing::proposal_of;
using testing::recount_text;
using testing::request_for;

namespace {

using Words = std::vector<std::string>;

template <typename Change>
Words failed_with(const PytorchRequest& request, PytorchPlan plan, const Change& change) {
  change(plan);
  const auto validation = recount_text(request, write_pytorch_plan(plan));
  if (!validation) FAIL(render(validation.error()));
  Words failed = failed_checks(*validation);
  for (std::string& one : failed) {  // without the place
    const std::size_t place = one.find("p.json:");
    if (place != std::string::npos) one.erase(place, one.find(": ", place) + 2 - place);
  }
  return failed;
}

std::string detail_of(const PytorchRequest& request, const PytorchPlan& plan) {
  const auto validation = recount_text(request, write_pytorch_plan(plan));
  if (!validation) FAIL(render(validation.error()));
  return std::ranges::find(validation->checks, "update", &Check::name)->detail;
}

PytorchRequest wide_training() { return request_for(testing::wide_layers(), 8, 116_MiB); }

const auto unchanged = [](const PytorchPlan&) {};

}  // namespace

TEST_CASE("some parameters' updates on the CPU are counted, with their bound and their seconds") {
  const PytorchRequest request = wide_training();
  const PytorchPlan plan = proposal_of(request, "cpu-optimizer-");
  REQUIRE(plan.cpu_parameters.size() >= 2);
  CHECK(failed_with(request, plan, unchanged) == Words{});
  CHECK(detail_of(request, plan) == "of " + std::to_string(plan.cpu_parameters.size()) +
                                        " parameters on the CPU, each as its gradient comes");
  CHECK(failed_with(request, plan, [](PytorchPlan& changed) {
          changed.cpu_parameters.front() = "block.90.fc.weight";
        }) == Words{"update: 'block.90.fc.weight' is no parameter of the step"});
  // One more, and one less: copies, memory and the pinned copies are others.
  for (const bool more : {true, false}) {
    const Words failed = failed_with(request, plan, [&](PytorchPlan& changed) {
      if (more) changed.cpu_parameters.emplace_back("head.weight");
      if (!more) changed.cpu_parameters.pop_back();
    });
    CAPTURE(more);
    for (const char* name : {"copied bytes", "pinned memory", "allocator"}) {
      CAPTURE(name);
      CHECK(std::ranges::any_of(failed, [&](const std::string& one) {
        return one.starts_with(std::string(name) + ": ");
      }));
    }
  }
  const Bytes bound = plan.totals.pcie_lower_bound;
  CHECK(bound > Bytes());
  CHECK(failed_with(request, plan,
                    [](PytorchPlan& changed) { changed.totals.pcie_lower_bound -= 1_B; }) ==
        Words{"bounds: 'pcie_lower_bound_bytes' is " + std::to_string(bound.count() - 1) +
              ", counted are " + std::to_string(bound.count())});
}

TEST_CASE("updates as gradients come are counted, and need gradients that come once") {
  const PytorchRequest request = wide_training();
  PytorchPlan plan = proposal_of(request, "cpu-optimizer");
  plan.optimizer_on_cpu = false;
  plan.cpu_parameters.clear();
  plan.early_updates = true;
  CHECK(detail_of(request, plan) == "on the GPU, each as its gradient comes");
  const PytorchRequest inference =
      request_for(testing::small_blocks(), 128, 128_MiB, Mode::inference);
  const PytorchPlan parts =
      make_pytorch_plans(inference, *rule_workspace_source(8.6))->front().plan;
  CHECK(failed_with(inference, parts, [](PytorchPlan& changed) { changed.early_updates = true; }) ==
        Words{"update: updates cannot be early: an inference has no update"});

  // A gradient's norm is computed: every gradient is read before the update.
  PytorchRequest clipped = request;
  StepGraph graph = *request.plan.document.graph;
  const auto update = std::ranges::find(graph.nodes, Phase::update, &KernelNode::phase);
  REQUIRE(update != graph.nodes.end());
  KernelNode norm = *(update - 1);
  norm.name = "norm";
  norm.reads = {graph.gradients.front()};
  norm.writes.clear();
  const std::string gradient = graph.storage(graph.gradients.front().storage).name;
  graph.nodes.insert(update, norm);
  testing::change_step(clipped, plan, std::move(graph));
  CHECK(failed_with(clipped, plan, unchanged) ==
        Words{"update: updates cannot be early: 'norm' reads '" + gradient + "'"});
}

TEST_CASE("an early update takes the host a hook's time, and its gradient's memory is free") {
  const PytorchRequest request = request_for(testing::small_blocks(), 128, 516_MiB);
  const PytorchPlan plan = proposal_of(request, "early-update");
  REQUIRE(plan.early_updates);
  CHECK(failed_with(request, plan, unchanged) == Words{});
  const Words late =
      failed_with(request, plan, [](PytorchPlan& changed) { changed.early_updates = false; });
  CHECK(std::ranges::any_of(late, [](const std::string& one) {
    return one.starts_with("allocator: 'peak_allocated_bytes' is ");
  }));
}

}  // namespace stowage
