// Regions that run again, as the recount of a plan for PyTorch knows them: rows of an
// nn.Sequential, modules in modules, and what they are given.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/planner/validate_pytorch/planned.hpp"

namespace stowage {

using testing::failed_checks;
using testing::proposal_of;
using testing::recorded_stages;
using testing::recount_text;

namespace {

using Regions = std::vector<std::string>;

/// The one failed check of the plan with these regions, without the place; "": none failed.
std::string said_of(const PytorchRequest& request, PytorchPlan plan, const Regions& regions) {
  plan.checkpoint = regions;
  const auto validation = recount_text(request, write_pytorch_plan(plan));
  if (!validation) FAIL(render(validation.error()));
  const Regions failed = failed_checks(*validation);
  if (failed.empty()) return "";
  const std::string begin = "checkpointed modules: p.json:";
  CHECK(failed.size() == 1);
  CHECK(failed.front().starts_with(begin));
  return failed.front().substr(failed.front().find(": ", begin.size()) + 2);
}

bool is_passed(const PlanValidation& validation, const std::string& name) {
  const auto found = std::ranges::find(validation.checks, name, &Check::name);
  REQUIRE(found != validation.checks.end());
  return found->passed;
}

}  // namespace

TEST_CASE("rows of an nn.Sequential are called, have children, and do not overlap") {
  const PytorchRequest request = recorded_stages(128, 220_MiB);
  const PytorchPlan plan = proposal_of(request, "checkpoint-nested");
  CHECK(said_of(request, plan, plan.checkpoint) == "");
  CHECK(said_of(request, plan, {"stem[0:3]", "stem[2:9]"}) ==
        "'stem[2:9]' runs again as part of another module already");
  CHECK(said_of(request, plan, {"stem[3:3]"}) == "'stem[3:3]' has no children");
  CHECK(said_of(request, plan, {"stem[6:10]"}) == "'stem' has 9 children");
  CHECK(said_of(request, plan, {"blocks[0:2]"}) ==
        "the step runs no module 'blocks', or runs it more than once");
  CHECK(said_of(request, plan, {"blocks.0[0:1]"}) ==
        "'blocks.0' is no nn.Sequential, whose children 'blocks.0[0:1]' would be");
  CHECK(said_of(request, plan, {"stem[0:1x]"}) ==
        "the step runs no module 'stem[0:1x]', or runs it more than once");
  CHECK(said_of(request, plan, {"blocks"}) ==
        "the step runs no module 'blocks', or runs it more than once");
  CHECK(said_of(request, plan, {"stem", "stem"}) ==
        "'stem' runs again as part of another module already");
}

TEST_CASE("a row is a region of a recording alone") {
  const PytorchRequest request = testing::request_for(testing::small_blocks(), 128, 516_MiB);
  CHECK(said_of(request, proposal_of(request, "checkpoint-all"), {"block[0:2]"}) ==
        "'block[0:2]' is a row of children, which only a recording knows");
}

TEST_CASE("forward writes afterwards to nothing that a region is given, or saves") {
  PytorchRequest request = recorded_stages(128, 220_MiB);
  PytorchPlan plan = proposal_of(request, "checkpoint-nested");
  StepGraph step = *request.plan.document.graph;
  const auto first_of = [&](std::string_view layer) {
    const auto found = std::ranges::find_if(step.nodes, [&](const KernelNode& node) {
      return node.phase == Phase::forward && node.op.valid() && step.layer(node.op) == layer;
    });
    REQUIRE(found != step.nodes.end());
    return found;
  };
  const TensorView given = first_of("blocks.0.first.0")->reads.front();
  KernelNode& writer = *first_of("blocks.1.first.0");
  writer.writes.push_back(given);
  const std::string name = writer.name, written = step.storage(given.storage).name;
  const auto saved = std::ranges::find_if(step.saved, [&](const SavedTensor& one) {
    return one.storage == given.storage && step.layer(one.op).starts_with("stem.");
  });
  REQUIRE(saved != step.saved.end());
  const std::string key = saved->call->key;
  testing::change_step(request, plan, std::move(step));
  CHECK(said_of(request, plan, {"blocks.0"}) ==
        "'" + name + "' writes to '" + written + "', which 'blocks.0' is given");
  CHECK(said_of(request, plan, {"stem[4:9]"}) ==
        "'" + name + "' writes to '" + key + "', which 'stem[4:9]' has saved before");
  CHECK(said_of(request, plan, {"blocks.1"}) ==
        "'blocks.1' would change '" + written + "' a second time");
}

TEST_CASE("the inputs of regions leave as saved tensors do, by the keys of arguments") {
  const PytorchRequest request = recorded_stages(128, 220_MiB);
  PytorchPlan plan = proposal_of(request, "checkpoint-nested");
  plan.checkpoint = {"blocks.0", "blocks.1", "blocks.2"};
  const Affine bytes(0, 4LL * 64 * 16 * 16);
  const OffloadedStorage input{
      .saved = {{"blocks.1#input0", DataType::float32, {batch_symbol, 64, 16, 16}}},
      .bytes = bytes,
      .start = "blocks.1#input0",
      .release = "blocks.2#input0",
      .fetch = "blocks.2#input0"};
  const auto failed_with = [&](const OffloadedStorage& entry) {
    PytorchPlan changed = plan;
    changed.offload = {entry};
    const auto validation = recount_text(request, write_pytorch_plan(changed));
    REQUIRE(validation.has_value());
    for (const char* name : {"saved tensors", "freed memory", "order of copies"}) {
      if (is_passed(*validation, name)) continue;
      const std::string detail = std::ranges::find(validation->checks, name, &Check::name)->detail;
      return name + detail.substr(detail.find(": "));
    }
    return std::string();
  };
  CHECK(failed_with(input) == "");
  OffloadedStorage wrong = input;
  wrong.saved.front().key = wrong.start = "blocks.1#input1";
  CHECK(failed_with(wrong) == "saved tensors: the step saves no tensor 'blocks.1#input1'");
  wrong = input;
  wrong.saved.front().shape = {batch_symbol, 64, 16, 15};
  CHECK(failed_with(wrong) ==
        "saved tensors: 'blocks.1#input0' has the shape [batch, 64, 16, 16], not [batch, 64, 16, "
        "15]");
  wrong = input;
  wrong.release = "blocks.0#input0";
  CHECK(failed_with(wrong) ==
        "order of copies: 'blocks.0#input0' is not saved between the copy's begin and backward");
  wrong = input;
  wrong.fetch = "blocks.0#input0";
  CHECK(failed_with(wrong).ends_with("uses the storage before it is fetched"));
  // What lies in an inner region has no key: its second run has it.
  plan.checkpoint.emplace_back("blocks.1.second");
  wrong = input;
  wrong.saved.front().key = wrong.start = "blocks.1.second#input0";
  CHECK(failed_with(wrong) == "saved tensors: the step saves no tensor 'blocks.1.second#input0'");
  CHECK(failed_with(input) == "");
}

TEST_CASE("what a later pass of a recorded step saves as well does not leave") {
  PytorchRequest request = recorded_stages(128, 256_MiB);
  PytorchPlan plan = proposal_of(request, "checkpoint-6-of-7");
  REQUIRE_FALSE(plan.offload.empty());
  const std::string key = plan.offload.front().saved.front().key;
  StepGraph step = *request.plan.document.graph;
  const auto saved = std::ranges::find_if(
      step.saved, [&](const SavedTensor& one) { return one.call && one.call->key == key; });
  REQUIRE(saved != step.saved.end());
  SavedTensor later = *saved;
  later.call.reset();
  const std::string storage = step.storage(later.storage).name;
  step.saved.push_back(later);
  ++plan.saved;
  testing::change_step(request, plan, std::move(step));
  const auto validation = recount_text(request, write_pytorch_plan(plan));
  REQUIRE(validation.has_value());
  const Regions failed = failed_checks(*validation);
  REQUIRE(failed.size() == 1);
  CHECK(failed.front().starts_with("freed memory: p.json:"));
  CHECK(failed.front().ends_with(": '" + key + "' lies in '" + storage +
                                 "', which a later pass of the step holds"));
}

}  // namespace stowage
