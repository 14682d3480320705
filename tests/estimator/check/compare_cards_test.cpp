#include "estimator/check/compare_cards.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "estimator/check/shared_replays.hpp"
#include "estimator/runtime/allocator_replay.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr const char* compared_net = R"(model: dense
inputs:
  image: {shape: [batch, 64]}
  label: {shape: [batch], dtype: int64}
layers:
  - linear: {name: fc1, from: image, features: 8192}
  - relu
  - linear: {name: fc2, features: 8192}
  - relu
  - linear: {name: fc3, features: 10}
loss:
  cross_entropy: {from: [fc3, label]}
train: {optimizer: adam}
)";

constexpr const char* compared_vision = R"(model: vision
inputs:
  image: {shape: [batch, 3, 352, 352]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: conv1, from: image, channels: 64, kernel: 3, padding: 1}
  - relu
  - conv2d: {name: conv2, channels: 128, kernel: 3, stride: 2, padding: 1}
  - relu
  - flatten
  - linear: {name: fc, features: 10}
loss:
  cross_entropy: {from: [fc, label]}
train: {optimizer: sgd}
)";

std::vector<CardCase> cases_by_total(const std::shared_ptr<const StepGraph>& graph,
                                     bool of_one_chip = true) {
  std::vector<CardCase> cases;
  for (int i = 0; i < 24; ++i) {
    cases.push_back({.graph = graph, .card = generic_card(500_MiB + i * 37_MiB)});
    if (!of_one_chip) cases.back().card.sm_count = 10 + 17 * (i % 7);
  }
  return cases;
}

}  // namespace

TEST_CASE("each case of a comparison is answered as the search for it alone") {
  const char* net = nullptr;
  SUBCASE("without workspaces") { net = compared_net; }
  SUBCASE("with convolutions, whose workspaces are part of the run") { net = compared_vision; }
  bool of_one_chip = true;
  SUBCASE("with other multiprocessors, on which sums want other workspaces") {
    net = compared_net;
    of_one_chip = false;
  }
  const auto graph = testing::lowered(testing::described(net), {.kernels = KernelSet::pytorch});
  REQUIRE(SharedReplays::serves(*graph, {}));
  const std::vector<CardCase> cases = cases_by_total(graph, of_one_chip);
  const auto rule = rule_workspace_source(8.6);
  const auto answers =
      compare_cards(cases, std::vector<WorkspaceSource*>(cases.size(), rule.get()));
  REQUIRE(answers.size() == cases.size());
  int fitting = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto alone = find_batch(graph, cases[i].card, {}, *rule);
    REQUIRE(alone.has_value());
    REQUIRE(answers[i].has_value());
    CHECK(answers[i]->largest == alone->largest);
    CHECK(answers[i]->recommended == alone->recommended);
    CHECK(answers[i]->all_tried == alone->all_tried);
    if (alone->recommended == 0) continue;
    ++fitting;
    CHECK(answers[i]->fits);
    CHECK(answers[i]->needed == alone->at_recommended->device_bytes);
    CHECK(answers[i]->needed_at == alone->recommended);
  }
  CHECK(fitting > 10);
  CHECK(fitting < 24);
}

TEST_CASE("a batch that is asked about is what is needed, whatever the largest is") {
  const auto graph =
      testing::lowered(testing::described(compared_net), {.kernels = KernelSet::pytorch});
  const auto rule = rule_workspace_source(8.6);
  std::vector<CardCase> cases = cases_by_total(graph);
  for (CardCase& one : cases) one.batch = 512;
  const auto answers =
      compare_cards(cases, std::vector<WorkspaceSource*>(cases.size(), rule.get()));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto step = size_step(graph, 512, *rule);
    REQUIRE(step.has_value());
    const CheckReport report = check(*step, cases[i].card, {});
    REQUIRE(answers[i].has_value());
    CHECK(answers[i]->needed_at == 512);
    CHECK(answers[i]->needed == report.device_bytes);
    CHECK(answers[i]->fits == report.fits);
    CHECK(answers[i]->headroom == report.headroom);
  }
}

TEST_CASE("runs are not shared where the allocator or cuDNN looks at the card's size") {
  const auto graph =
      testing::lowered(testing::described(compared_net), {.kernels = KernelSet::pytorch});
  CHECK(SharedReplays::serves(*graph, {}));
  CHECK_FALSE(SharedReplays::serves(*graph, {.runtime = Runtime::tensorflow}));
  CHECK_FALSE(SharedReplays::serves(
      *graph, {.allocator = {.garbage_collection_threshold = 0.8, .memory_fraction = 0.9}}));
  CHECK_FALSE(SharedReplays::serves(*graph, {.allocator = {.expandable_segments = true}}));
  const LoweringSettings timed{.kernels = KernelSet::pytorch, .convolutions = {.benchmark = true}};
  CHECK(SharedReplays::serves(*testing::lowered(testing::described(compared_net), timed), {}));
  CHECK_FALSE(
      SharedReplays::serves(*testing::lowered(testing::described(compared_vision), timed), {}));
}

TEST_CASE("runs are of each step that differs in the compute capability alone") {
  const auto lowered_for = [](const char* net, double capability) {
    return testing::lowered(testing::described(net),
                            {.kernels = KernelSet::pytorch, .compute_capability = capability});
  };
  const auto graph = lowered_for(compared_vision, 7.5);
  const SharedReplays runs(graph, {}, {});
  CHECK(runs.matches(*graph, {}));
  CHECK(runs.matches(*lowered_for(compared_vision, 8.6), {}));
  CHECK_FALSE(runs.matches(*lowered_for(compared_net, 7.5), {}));
  CHECK_FALSE(runs.matches(*graph, {{.name = "cublas", .bytes = 8_MiB}}));
  StepGraph larger = *graph;
  larger.storages.back().bytes = Affine(1);
  CHECK_FALSE(runs.matches(larger, {}));
  StepGraph longer = *graph;
  longer.nodes.back().holds.push_back(StorageId::of(0));
  CHECK_FALSE(runs.matches(longer, {}));
  StepGraph otherwise = *graph;
  otherwise.settings.mode = Mode::inference;
  CHECK_FALSE(runs.matches(otherwise, {}));
}

TEST_CASE("a run is shared among steps of a batch that take the same workspaces alone") {
  const auto graph =
      testing::lowered(testing::described(compared_vision), {.kernels = KernelSet::pytorch});
  const auto rule = rule_workspace_source(8.6);
  Result<SizedStep> step = size_step(graph, 8, *rule);
  REQUIRE(step.has_value());
  SharedReplays runs(graph, {}, {});
  const std::vector<Touches> touches = storage_touches(*graph);
  const ReplayOutcome first = runs.without_limit(*step, touches);
  for (Engines& engines : step->engines) {
    if (!engines.empty()) engines = Engines{{.workspace = 1_GiB}};
  }
  CHECK(runs.without_limit(*step, touches).reserved >= first.reserved + 512_MiB);
}

TEST_CASE("a run within a limit serves the limits under which the driver answers alike") {
  const auto graph =
      testing::lowered(testing::described(compared_vision), {.kernels = KernelSet::pytorch});
  const auto rule = rule_workspace_source(8.6);
  const Result<SizedStep> step = size_step(graph, 64, *rule);
  REQUIRE(step.has_value());
  const std::vector<Touches> touches = storage_touches(*graph);
  SharedReplays shared(graph, {}, {});
  const Bytes plenty = shared.without_limit(*step, touches).reserved;
  int served = 0, hindered = 0;
  // From above, so that a run that is known has more often than not been one of another limit.
  for (Bytes limit = plenty + 8_MiB; limit >= 0_B; limit -= 2_MiB) {
    const LimitedReplay run = shared.at_limit(limit, *step, touches);
    const LimitedReplay own = SharedReplays(graph, {}, {}).at_limit(limit, *step, touches);
    CHECK(run.limits.contains(limit));
    CHECK(run.completes == own.completes);
    CHECK(run.nothing_refused() == own.nothing_refused());
    CHECK(run.nothing_refused() == (limit >= plenty));
    CHECK(run.taken.reserved == own.taken.reserved);
    CHECK(run.taken.settles == own.taken.settles);
    served += run.limits.contains(limit + 2_MiB) ? 1 : 0;
    hindered += run.completes && !run.nothing_refused() ? 1 : 0;
  }
  CHECK(served > 4);
  CHECK(hindered > 0);
}

TEST_CASE("what else is taken of the device does not show in a run's limits") {
  const auto graph =
      testing::lowered(testing::described(compared_vision), {.kernels = KernelSet::pytorch});
  const auto rule = rule_workspace_source(8.6);
  const Result<SizedStep> step = size_step(graph, 64, *rule);
  REQUIRE(step.has_value());
  const std::vector<Touches> touches = storage_touches(*graph);
  const Bytes plenty = SharedReplays(graph, {}, {}).without_limit(*step, touches).reserved;
  const Bytes limit = plenty - 2_MiB;
  const auto alone = replay_process(*step, touches, {.limit = limit});
  const auto beside =
      replay_process(*step, touches, {.limit = limit, .outside = 301_MiB, .others = 1_GiB});
  REQUIRE(alone.same_limits.end.has_value());
  CHECK(*alone.same_limits.end <= plenty);
  CHECK(beside.same_limits.from == alone.same_limits.from);
  CHECK(beside.same_limits.end == alone.same_limits.end);
}

}  // namespace stowage
