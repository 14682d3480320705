// A step that keeps all of its forward pass, rewritten to make single values of it again.
#include "estimator/rewrite/recompute.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "estimator/document/make_document.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/rewrite/rerun_groups.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

using Names = std::vector<std::string>;

constexpr std::string_view recomputed_network = R"(
model: net
inputs: {x: {shape: [batch, 4, 8, 8]}, t: {shape: [batch], dtype: int64}}
layers:
  - conv2d: {name: first, from: x, channels: 4, kernel: 3, padding: 1}
  - batch_norm: {name: norm}
  - relu: {name: act, in_place: true}
  - dropout: {name: drop}
  - conv2d: {name: second, channels: 4, kernel: 3, padding: 1}
  - gelu: {name: bent}
  - flatten: {name: flat}
  - linear: {name: head, features: 10}
loss: {cross_entropy: {from: [head, t]}}
)";

StepGraph recomputed_from(int micro_batches = 1, KernelSet kernels = KernelSet::stowage) {
  return *testing::lowered(testing::described(std::string(recomputed_network)),
                           {.kernels = kernels, .micro_batches = micro_batches});
}

std::vector<RecomputedValue> once(const Names& names) {
  std::vector<RecomputedValue> values;
  for (const std::string& name : names) values.push_back({name});
  return values;
}

StepGraph recomputed_values(const StepGraph& step, const std::vector<RecomputedValue>& values) {
  auto result = with_recomputation(step, values);
  if (!result) FAIL(render(result.error()));
  return *std::move(result);
}

/// The kernels that run again, in their order.
Names second_calls(const StepGraph& step) {
  Names names;
  for (const KernelNode& node : step.nodes) {
    if (node.name.find(".recomputed") != std::string::npos) names.push_back(node.name);
  }
  return names;
}

const KernelNode& recomputed_call(const StepGraph& step, const std::string& name) {
  const auto found = std::ranges::find(step.nodes, name, &KernelNode::name);
  REQUIRE_MESSAGE(found != step.nodes.end(), name);
  return *found;
}

std::ptrdiff_t place_of(const StepGraph& step, const std::string& name) {
  return &recomputed_call(step, name) - step.nodes.data();
}

Names arguments_of(const StepGraph& step, const std::string& name) {
  Names names;
  for (const TensorView& view : recomputed_call(step, name).reads) {
    names.push_back(step.storage(view.storage).name);
  }
  return names;
}

StepGraph recomputed(const StepGraph& step, const Names& values) {
  return recomputed_values(step, once(values));
}

std::string why_not(const Result<StepGraph>& result) {
  return result ? "no error" : result.error().front().message;
}

Bytes live_peak(const StepGraph& step) {
  const auto sized = size_storages(std::make_shared<const StepGraph>(step), 16);
  REQUIRE(sized);
  const auto live = live_bytes(*sized, {.with_workspaces = false}, storage_touches(step));
  return *std::ranges::max_element(live);
}

/// Names of storages, one of each group, that may be recomputed.
Names candidates_of(const StepGraph& step) {
  Names names;
  for (const RerunGroup& group : rerun_groups(step).groups) {
    if (!group.makes.empty()) names.push_back(step.storage(group.makes.front()).name);
  }
  return names;
}

}  // namespace

TEST_CASE("a recomputed value is made again before its first backward reader, which reads it") {
  const StepGraph whole = recomputed_from();
  const StepGraph step = recomputed(whole, {"second"});
  CHECK(second_calls(step) == Names{"second.forward.recomputed"});
  CHECK(step.nodes.size() == whole.nodes.size() + 1);
  CHECK(place_of(step, "second.forward.recomputed") + 1 == place_of(step, "bent.backward"));
  const KernelNode& again = recomputed_call(step, "second.forward.recomputed");
  const KernelNode& forward = recomputed_call(step, "second.forward");
  CHECK(again.phase == Phase::backward);
  CHECK(again.op == forward.op);
  CHECK(again.reads == forward.reads);
  CHECK(again.attributes == forward.attributes);
  CHECK(again.convolution != forward.convolution);
  CHECK(step.convolutions.size() == whole.convolutions.size() + 1);
  CHECK(arguments_of(step, "bent.forward") == Names{"second"});
  CHECK(arguments_of(step, "bent.backward").front() == "second.recomputed");
  CHECK(step.settings.recomputed == once({"second"}));
}

TEST_CASE("kernels that write one storage run again together, and all that they make is new") {
  const StepGraph step = recomputed(recomputed_from(), {"drop", "norm"});
  // The activation works in place on the batch norm's result: both in one pass.
  CHECK(second_calls(step) == Names{"norm.forward.recomputed", "drop.forward.recomputed"});
  CHECK(arguments_of(step, "norm.forward.recomputed") ==
        Names{"first", "norm.weight", "norm.bias", "norm.save_mean", "norm.save_invstd"});
  CHECK(recomputed_call(step, "norm.forward.recomputed").writes.size() == 1);
  CHECK(arguments_of(step, "drop.forward.recomputed") == Names{"norm.recomputed"});
  CHECK(arguments_of(step, "act.backward").front() == "norm.recomputed");
  for (const std::string& read : arguments_of(step, "drop.backward")) {
    CHECK_MESSAGE(read != "drop.mask", "the mask that forward made");
  }
  // Asking for any of them asks for all.
  CHECK(recomputed(recomputed_from(), {"norm"}).nodes ==
        recomputed(recomputed_from(), {"norm", "norm"}).nodes);
}

TEST_CASE("a batch norm's second run takes the statistics of the first, which are kept") {
  const StepGraph whole = recomputed_from();
  const StepGraph step = recomputed(whole, {"norm"});
  const KernelNode& first = recomputed_call(step, "norm.forward");
  const KernelNode& again = recomputed_call(step, "norm.forward.recomputed");
  CHECK(first == recomputed_call(whole, "norm.forward"));
  CHECK(again.kernel == Kernel::batch_norm_apply);
  CHECK(again.attributes.text("function") == "relu");
  CHECK(again.flops.at(1) < first.flops.at(1));
  CHECK(arguments_of(step, "norm.backward") == arguments_of(whole, "norm.backward"));
  CHECK_FALSE(with_recomputation(whole, {{"norm.save_mean"}}).has_value());
}

TEST_CASE("the second run draws the same random numbers") {
  const StepGraph step = recomputed(recomputed_from(), {"norm", "drop"});
  CHECK(recomputed_call(step, "drop.forward").attributes.has("seed"));
  CHECK(recomputed_call(step, "drop.forward.recomputed").attributes ==
        recomputed_call(step, "drop.forward").attributes);
}

TEST_CASE("what runs again reads what was kept, or what was made again, however long the chain") {
  const StepGraph whole = recomputed_from();
  const StepGraph step = recomputed(whole, {"first", "norm", "drop", "second", "bent"});
  // Backward wants the last value first: everything before it is made then, and once.
  CHECK(second_calls(step) == Names{"first.forward.recomputed", "norm.forward.recomputed",
                                    "drop.forward.recomputed", "second.forward.recomputed",
                                    "bent.forward.recomputed"});
  CHECK(place_of(step, "bent.forward.recomputed") + 1 == place_of(step, "head.backward.filter"));
  // With one value kept in the middle the chain falls in two, each as late as it can be.
  const StepGraph parted = recomputed(whole, {"first", "norm", "second", "bent"});
  CHECK(place_of(parted, "first.forward.recomputed") > place_of(parted, "bent.backward"));
  CHECK(arguments_of(parted, "second.forward.recomputed").front() == "drop");
}

TEST_CASE("what was made again can be let go and made once more") {
  const StepGraph whole = recomputed_from();
  // "drop" is wanted for "second" in the chain of "bent", and later by its own consumer.
  const StepGraph step = recomputed_values(
      whole, {{"drop"}, {"second"}, {"bent"}, {"drop", "second.backward.filter"}});
  CHECK(second_calls(step) == Names{"drop.forward.recomputed", "second.forward.recomputed",
                                    "bent.forward.recomputed", "drop.forward.recomputed~2"});
  CHECK(place_of(step, "drop.forward.recomputed~2") + 1 ==
        place_of(step, "second.backward.filter"));
  CHECK(arguments_of(step, "second.forward.recomputed").front() == "drop.recomputed");
  CHECK(arguments_of(step, "second.backward.filter").front() == "drop.recomputed~2");
  for (const std::string& read : arguments_of(step, "drop.backward")) {
    if (read.find("mask") != std::string::npos) CHECK(read == "drop.mask.recomputed~2");
  }
  // Nothing is renewed that had not been made.
  CHECK(second_calls(recomputed_values(whole, {{"drop"}, {"drop", "second.backward.filter"}})) ==
        Names{"drop.forward.recomputed"});
}

TEST_CASE("each micro-batch makes its own values again") {
  const StepGraph whole = recomputed_from(2);
  const StepGraph both = recomputed(whole, {"second@0", "second@1"});
  CHECK(second_calls(both) == Names{"second.forward@0.recomputed", "second.forward@1.recomputed"});
  CHECK(place_of(both, "second.forward@0.recomputed") < place_of(both, "first.forward@1"));
  CHECK(recomputed_call(both, "second.forward@1.recomputed").micro_batch == 1);
  CHECK(second_calls(recomputed(whole, {"drop@1"})) == Names{"drop.forward@1.recomputed"});
}

TEST_CASE("recomputation lowers the live bytes at the start of backward") {
  const StepGraph whole = recomputed_from();
  CHECK(live_peak(recomputed(whole, {"norm", "second"})) < live_peak(whole));
  for (const std::string& value : candidates_of(whole)) {
    const StepGraph step = recomputed(whole, {value});
    const auto saved = [&](const SavedTensor& row) {
      return step.storage(row.storage).name == value;
    };
    CHECK(std::ranges::none_of(step.saved, saved));
  }
}

TEST_CASE("any choice of values gives a step like any other, written and read back") {
  std::mt19937 random(7);
  StepDocument document;
  document.runtime = Runtime::stowage;
  document.parameters = testing::described(std::string(recomputed_network)).parameters;
  for (const int micro_batches : {1, 3}) {
    const StepGraph whole = recomputed_from(micro_batches);
    Names backward;
    for (const KernelNode& node : whole.nodes) {
      if (node.phase == Phase::backward) backward.push_back(node.name);
    }
    for (int trial = 0; trial < 40; ++trial) {
      std::vector<RecomputedValue> values;
      for (const std::string& value : candidates_of(whole)) {
        if (random() % 2 == 0) values.push_back({value});
        if (random() % 8 == 0) values.push_back({value, backward[random() % backward.size()]});
      }
      const StepGraph step = recomputed_values(whole, values);
      document.graph = std::make_shared<const StepGraph>(step);
      const auto read = read_step(
          std::make_shared<const SourceText>(SourceText{"step.json", write_step(document)}));
      REQUIRE_MESSAGE(read, render(read.error()));
      CHECK((*read->graph == step));
    }
  }
}

TEST_CASE("the settings say what is recomputed: lowering by them gives the same step") {
  const ModelGraph model = testing::described(std::string(recomputed_network));
  const StepGraph step = recomputed(recomputed_from(2), {"second@1", "norm@0"});
  const auto again = lower_step(model, step.settings);
  REQUIRE(again);
  CHECK((*again == step));
  LoweringSettings inference = step.settings;
  inference.mode = Mode::inference;
  inference.micro_batches = 1;
  CHECK(second_calls(*lower_step(model, inference)).empty());
}

TEST_CASE("what cannot be recomputed says why") {
  const StepGraph whole = recomputed_from();
  CHECK(recomputed(whole, {}) == whole);
  CHECK(why_not(with_recomputation(whole, once({"third"}))) ==
        "values of 'net' cannot be recomputed: there is no storage 'third'");
  CHECK(why_not(with_recomputation(whole, {{"second", "second.forward"}})) ==
        "values of 'net' cannot be recomputed: there is no backward node 'second.forward'");
  for (const char* kept : {"x", "first.weight", "loss", "first.weight.grad"}) {
    CHECK(why_not(with_recomputation(whole, once({kept}))) ==
          "values of 'net' cannot be recomputed: the kernel that makes '" + std::string(kept) +
              "' runs once");
  }
  CHECK(why_not(with_recomputation(recomputed(whole, {"second"}), once({"first"}))) ==
        "values of 'net' cannot be recomputed: it has recomputed values already");
  CHECK(why_not(with_micro_batches(recomputed(whole, {"second"}), 2)) ==
        "the step of 'net' recomputes values; micro-batches come before that");
  CHECK(why_not(with_recomputation(recomputed_from(1, KernelSet::pytorch), once({"second"}))) ==
        "values of 'net' cannot be recomputed: its kernels are those of pytorch, which decides "
        "itself what it keeps");
}

TEST_CASE("a weight that has been updated is not read again") {
  StepGraph step = recomputed_from();
  // As if the second convolution were updated before its result is wanted again.
  const auto update = std::ranges::find(step.nodes, "update.second.weight", &KernelNode::name);
  REQUIRE(update != step.nodes.end());
  const KernelNode early = *update;
  step.nodes.erase(update);
  const auto backward = std::ranges::find(step.nodes, "bent.backward", &KernelNode::name);
  step.nodes.insert(backward, early);
  CHECK(why_not(with_recomputation(step, once({"second"}))) ==
        "values of 'net' cannot be recomputed: what 'second.forward' reads has changed by then");
  CHECK(with_recomputation(step, once({"first"})));
}

}  // namespace stowage
