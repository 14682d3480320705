// Plans of shipped models whose shape is known from the literature.
#include <doctest/doctest.h>

#include "estimator/card/card_file.hpp"
#include "estimator/document/make_document.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/propose/step_plans.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

TEST_CASE("vDNN: VGG-16 at a batch of 256 trains on 12 GB by swapping early activations alone") {
  const auto card = find_card("rtx3060", testing::source_path("/configs/gpus"));
  REQUIRE(card.has_value());
  const ChosenStep step{.lowering = {.optimizer = {.name = "sgd"}}};
  const Host host{.name = "test",
                  .cpu_flops = 2e11,
                  .memory_bandwidth = 2e10,
                  .h2d_bandwidth = 12e9,
                  .d2h_bandwidth = 12e9};
  const PlanRequest request{
      .document =
          make_document(testing::shipped("vgg16"), step, Runtime::stowage, {}, step_alone).value(),
      .batch = WholeBatch(256),
      .card = card->card,
      .host = host,
      .budget = Bytes(11LL << 30),
      .levers = parse_levers("activations").value()};
  const auto workspaces = rule_workspace_source(8.6);
  const ProposalOptions options{.work = {60'000'000}, .target_gap = 0.05};
  const Planning planning(request, *workspaces, options);
  StepCase whole = make_case(planning, planning.document.graph).value();
  const Bytes everything = whole.all_gpu.least_arena;
  CHECK(everything > Bytes(14LL << 30));
  const auto plan = cheapest_plan(planning, whole, "cheapest", {.effort = Effort::quick});
  REQUIRE(plan.has_value());
  CHECK(plan->totals.arena <= request.budget.bytes);
  Bytes swapped, of_first_stages;
  for (const Transfer& transfer : plan->transfers) {
    const Storage& storage = plan->storage(transfer.storage);
    if (storage.persistence == Persistence::from_host) continue;
    if (direction_of(*plan, transfer) == Direction::h2d) continue;
    CAPTURE(storage.name);
    const bool is_activation = storage.storage_class == StorageClass::activation ||
                               storage.storage_class == StorageClass::saved_auxiliary;
    CHECK(is_activation);
    swapped += plan->bytes(transfer.storage);
    const std::string_view layer = plan->step.graph->layer(storage.op);
    if (layer.starts_with("stage1") || layer.starts_with("stage2") || layer.starts_with("stage3")) {
      of_first_stages += plan->bytes(transfer.storage);
    }
  }
  // vDNN's finding: the early layers have the large feature maps, and the longest time until they
  // are read again.
  CHECK(swapped > Bytes(3LL << 30));
  CHECK(of_first_stages.count() > swapped.count() / 10 * 8);
  CHECK(plan->totals.step_seconds < 1.2 * whole.all_gpu.seconds);
}

}  // namespace stowage
