#include "planner/explain/plan_words.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "estimator/rewrite/early_updates.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/propose/step_plans.hpp"
#include "tests/support/pinned_plans.hpp"

namespace stowage {
namespace {

const Plan* named(const std::vector<Plan>& plans, std::string_view name) {
  for (const Plan& plan : plans) {
    if (plan.name == name) return &plan;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("a plan that does nothing says so") {
  const std::vector<Plan> plans = testing::small_plans(64_MiB);
  REQUIRE(named(plans, "all-gpu") != nullptr);
  CHECK(plan_in_words(*named(plans, "all-gpu")) == "keeps everything on the GPU");
}

TEST_CASE("what crosses the link is named by kind, with its bytes") {
  const std::vector<Plan> plans = testing::small_plans(3_MiB);
  const Plan* fewest = named(plans, "min-pcie");
  REQUIRE(fewest != nullptr);
  const std::string words = plan_in_words(*fewest);
  CAPTURE(words);
  CHECK(words.find("each way") != std::string::npos);
  CHECK(words.find(" on the CPU") == std::string::npos);
  // The words name the bytes that the plan moves, except its inputs.
  Bytes inputs;
  for (const Transfer& transfer : fewest->transfers) {
    if (fewest->storage(transfer.storage).persistence == Persistence::from_host) {
      inputs += fewest->bytes(transfer.storage);
    }
  }
  CHECK(inputs > 0_B);
  CHECK(words.find(format_bytes(fewest->totals.h2d)) == std::string::npos);
}

TEST_CASE("parts of the batch, the CPU's share and recomputed values are said") {
  std::vector<Plan> plans = testing::small_plans(3_MiB);
  Plan plan = plans.front();
  StepGraph graph = *plan.step.graph;
  graph.settings.micro_batches = 2;
  graph.settings.recomputed = {{"relu1"}};
  graph.settings.early_updates = true;
  plan.step.graph = std::make_shared<const StepGraph>(std::move(graph));
  plan.transfers.clear();
  std::int64_t updates = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const bool update = plan.step.graph->nodes[i].phase == Phase::update;
    updates += update ? 1 : 0;
    plan.nodes[i].processor = update ? cpu_processor : gpu_processor;
    plan.nodes[i].window = {};
  }
  CHECK(
      plan_in_words(plan) ==
      "takes the batch in 2 parts of 16; runs " + std::to_string(updates) + " of " +
          std::to_string(updates) +
          " updates on the CPU; makes 1 value of the forward pass again in backward; updates each "
          "parameter as soon as its gradient is whole");
  // Issued before the last kernel of backward: beside that.
  const auto words_on_cpu = [&] {
    const std::string words = plan_in_words(plan);
    const std::size_t begin = words.find("runs ");
    return words.substr(begin, words.find(';', begin) - begin);
  };
  const std::string all = std::to_string(updates), most = std::to_string(updates - 1);
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].processor != cpu_processor) continue;
    plan.nodes[i].window = StepRange{0, static_cast<std::int32_t>(i) + 1};
    last = i;
  }
  REQUIRE(last.has_value());
  CHECK(words_on_cpu() == "runs " + all + " of " + all + " updates on the CPU, beside the GPU");
  plan.nodes[*last].window = {};
  CHECK(words_on_cpu() ==
        "runs " + all + " of " + all + " updates on the CPU, " + most + " of them beside the GPU");
  // Two of the CPU's are beside each other, not beside the GPU.
  plan.nodes[*last].window =
      StepRange{static_cast<std::int32_t>(*last) - 1, static_cast<std::int32_t>(*last) + 1};
  CHECK(nodes_beside_gpu(plan)[*last] == false);
}

}  // namespace stowage
