// Which calls of PyTorch's hooks carry out a swap of the plan.
#include "planner/pytorch/offload_decisions.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/step/saved_storages.hpp"
#include "planner/pytorch/saved_moments.hpp"
#include "tests/support/hand_made_plan.hpp"

namespace stowage {

namespace {

/// The hand-made plan, whose y1 leaves after node 1 and is back for node 3, as one of a recorded
/// step.
Plan plan_of_recorded_step() {
  Plan plan = hand_made::plan();
  StepGraph graph = *plan.step.graph;
  graph.saved = {{.op = {}, .storage = StorageId{hand_made::y1}, .role = "result"}};
  plan.step.graph = std::make_shared<const StepGraph>(std::move(graph));
  return plan;
}

SavedMoment moment(std::string key, std::int32_t storage, std::int32_t packed_after, NodeId held) {
  return {.key = std::move(key),
          .view = {.storage = StorageId{storage}},
          .packed_after = NodeId{packed_after},
          .unpacked_before = NodeId{3},
          .held_until = held};
}

/// The call at which y1 is let go, where the script itself holds it until `held`.
std::optional<std::string> release_of(NodeId held) {
  const auto decisions =
      offload_decisions(plan_of_recorded_step(), {moment("fc1#0", hand_made::y1, 0, held),
                                                  moment("fc2#0", hand_made::y2, 1, NodeId{}),
                                                  moment("loss#0", hand_made::dy2, 2, NodeId{})});
  if (decisions.empty()) return std::nullopt;
  REQUIRE(decisions.size() == 1);
  CHECK(decisions.front().storage.start == "fc1#0");
  return decisions.front().storage.release;
}

}  // namespace

TEST_CASE("nothing is let go before the script lets it go") {
  CHECK(release_of(NodeId{}) == "fc2#0");  // after the copy and the last use, node 1
  CHECK(release_of(NodeId{0}) == "fc2#0");
  CHECK(release_of(NodeId{2}) == "loss#0");
  CHECK(release_of(NodeId{4}) == std::nullopt);  // until backward: it would free nothing
}

TEST_CASE("what a kernel writes to after it was saved stays") {
  Plan plan = plan_of_recorded_step();
  const std::vector<SavedMoment> moments{moment("fc1#0", hand_made::y1, 0, NodeId{}),
                                         moment("fc2#0", hand_made::y2, 1, NodeId{})};
  REQUIRE(offload_decisions(plan, moments).size() == 1);
  StepGraph graph = *plan.step.graph;
  graph.nodes[1].writes.push_back({.storage = StorageId{hand_made::y1}});
  plan.step.graph = std::make_shared<const StepGraph>(std::move(graph));
  CHECK(offload_decisions(plan, moments).empty());
}

TEST_CASE("of a recorded step of several passes what the first saves may leave") {
  StepGraph graph = *hand_made::plan().step.graph;
  const SavedTensor first{.op = {}, .storage = StorageId{hand_made::y1}, .role = "result"};
  const SavedTensor later{.op = {}, .storage = StorageId{hand_made::y2}, .role = "result"};
  graph.saved = {first, later};
  CHECK_FALSE(has_recorded_keys(graph));
  CHECK(kept_by_autograd(graph)[hand_made::y1]);
  CHECK(kept_by_autograd(graph)[hand_made::y2]);
  graph.saved.front().call = SavedCall{.key = "fc1#0", .view = {.storage = first.storage}};
  CHECK(has_recorded_keys(graph));
  CHECK_FALSE(names_are_recorded({.graph = std::make_shared<const StepGraph>(graph)}));
  CHECK(kept_by_autograd(graph)[hand_made::y1]);
  CHECK_FALSE(kept_by_autograd(graph)[hand_made::y2]);
  const std::vector<SavedMoment> moments = saved_moments(graph);
  REQUIRE(moments.size() == 1);
  CHECK(moments.front().key == "fc1#0");
}

}  // namespace stowage
