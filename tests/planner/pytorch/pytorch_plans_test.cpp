// Decisions for PyTorch's hooks: within the card by the simulated allocator, above their bounds,
// and the same whenever they are asked for.
#include "planner/pytorch/pytorch_plans.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "estimator/adapt/adapt.hpp"
#include "estimator/document/make_document.hpp"
#include "estimator/runtime/process_overhead.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/pytorch/module_regions.hpp"
#include "planner/pytorch/saved_moments.hpp"
#include "tests/planner/validate_pytorch/planned.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

PytorchRequest request_of(const ModelGraph& model, std::int64_t batch, Bytes left,
                          Mode mode = Mode::train) {
  return testing::request_for(model, batch, left, mode);
}

PytorchRequest request_of(const std::string& model, std::int64_t batch, Bytes left) {
  return request_of(testing::shipped(model), batch, left);
}

Bytes reserved_with_everything(const std::string& model, std::int64_t batch) {
  const PytorchRequest request = request_of(model, batch, 60_GiB);
  const auto workspaces = rule_workspace_source(8.6);
  const auto plans = make_pytorch_plans(request, *workspaces);
  REQUIRE(plans.has_value());
  REQUIRE(plans->size() == 1);
  CHECK(plans->front().name == "as-is");
  CHECK(plans->front().plan.changes_nothing());
  return plans->front().plan.totals.peak_reserved;
}

const PytorchProposal& named(const std::vector<PytorchProposal>& plans, std::string_view name) {
  const auto found = std::ranges::find(plans, name, &PytorchProposal::name);
  if (found == plans.end()) {
    std::string names;
    for (const PytorchProposal& proposal : plans) names += proposal.name + " ";
    FAIL(names);
  }
  return *found;
}

}  // namespace

TEST_CASE("plans for PyTorch fit the card, are above their bounds, and name what they move") {
  struct Tried {
    std::string model;
    std::int64_t batch;
    std::vector<int> percents;
  };
  const Tried all[] = {{"resnet18", 32, {75, 60}}, {"gpt2", 2, {90}}};
  for (const Tried& tried : all) {
    const std::string& model = tried.model;
    const std::int64_t batch = tried.batch;
    CAPTURE(model);
    const Bytes whole = reserved_with_everything(model, batch);
    for (const int percent : tried.percents) {
      CAPTURE(percent);
      const PytorchRequest request = request_of(model, batch, Bytes(whole.count() / 100 * percent));
      const auto workspaces = rule_workspace_source(8.6);
      const auto plans = make_pytorch_plans(request, *workspaces);
      if (!plans) FAIL(render(plans.error()));
      std::set<std::string> keys;
      for (const SavedMoment& moment : saved_moments(*request.plan.document.graph)) {
        CHECK(keys.insert(moment.key).second);
      }
      for (const PytorchProposal& proposal : *plans) {
        CAPTURE(proposal.name);
        const PytorchPlan& plan = proposal.plan;
        const PytorchTotals& totals = plan.totals;
        CHECK(proposal.report.fits);
        CHECK(totals.peak_reserved <= request.plan.available);
        CHECK(totals.peak_allocated <= totals.peak_reserved);
        CHECK_FALSE(plan.changes_nothing());
        CHECK(totals.to_host + totals.from_host >= totals.pcie_lower_bound);
        CHECK(totals.step_seconds >= totals.step_lower_bound_seconds.value_or(0) * (1 - 1e-9));
        Bytes moved;
        const auto is_known = [&](const std::string& key) {
          const std::size_t input = key.find("#input");
          const std::string region = key.substr(0, input);
          return keys.contains(key) ||
                 (input != std::string::npos &&
                  std::ranges::find(plan.checkpoint, region) != plan.checkpoint.end());
        };
        for (const OffloadedStorage& storage : plan.offload) {
          moved += Bytes(storage.bytes.at(plan.batch)) * plan.micro_batches;
          CHECK(is_known(storage.start));
          CHECK((storage.release.empty() || is_known(storage.release)));
          CHECK((storage.fetch.empty() || is_known(storage.fetch)));
          for (const SavedName& name : storage.saved) CHECK(is_known(name.key));
        }
        CHECK((plan.optimizer_on_cpu ? moved < totals.to_host : moved == totals.to_host));
        CHECK((totals.from_host == totals.to_host));
      }
      CHECK(std::ranges::is_sorted(*plans, {}, [](const PytorchProposal& proposal) {
        return std::pair(proposal.changes_training, proposal.plan.totals.step_seconds);
      }));
    }
  }
}

TEST_CASE("a step whose state alone exceeds the card is updated on the CPU") {
  const auto workspaces = rule_workspace_source(8.6);
  const PytorchRequest request = request_of("gpt2", 1, 1500_MiB);
  const auto plans = make_pytorch_plans(request, *workspaces);
  if (!plans) FAIL(render(plans.error()));
  const PytorchPlan& plan = named(*plans, "cpu-optimizer-checkpoint").plan;
  CHECK(plan.optimizer_on_cpu);
  CHECK(plan.cpu_parameters.empty());
  CHECK(plan.early_updates);
  const Bytes gradients(4LL * 124'439'808);
  CHECK(plan.totals.pcie_lower_bound == 2 * gradients);
  CHECK(plan.totals.to_host == gradients);
  CHECK(plan.totals.pinned == 2 * gradients);
  CHECK(plan.totals.step_seconds > plan.totals.all_gpu_step_seconds);

  const PytorchProposal& best = plans->front();
  CHECK(best.name ==
        fmt::format("cpu-optimizer-{}-of-148-checkpoint", best.plan.cpu_parameters.size()));
  const std::vector<std::string>& moved = best.plan.cpu_parameters;
  REQUIRE(!moved.empty());
  // Backward comes to the last block first.
  CHECK(moved.front() == "h.11.mlp_c_proj.weight");
  CHECK(
      std::ranges::none_of(moved, [](const std::string& name) { return name.ends_with(".bias"); }));
  const PytorchTotals& some = best.plan.totals;
  CHECK(some.to_host == some.from_host);
  CHECK(some.pinned == some.to_host * 2);
  CHECK(some.pcie_lower_bound > Bytes());
  CHECK(some.to_host * 2 >= some.pcie_lower_bound);
  CHECK(some.to_host < gradients);
  CHECK(some.step_seconds < plan.totals.step_seconds);
  CHECK(best.remarks ==
        std::vector<std::string>{"updates begin before optimizer.step(): the script may not read "
                                 "or add up gradients, nor leave a step out"});
}

TEST_CASE("updates as gradients come need no memory for all gradients, and move nothing") {
  const auto workspaces = rule_workspace_source(8.6);
  const ModelGraph model = testing::described(R"(model: net
inputs: {x: {shape: [batch, 2048]}, t: {shape: [batch], dtype: int64}}
layers:
  - linear: {name: a, from: x, features: 2048}
  - linear: {name: b, features: 2048}
  - linear: {name: c, features: 2048}
  - linear: {name: d, features: 2048}
loss: {cross_entropy: {from: [d, t]}}
)");
  // Four of 16 MiB, with AdamW's two states: 192 MiB, 64 of gradients, and 64 of temporaries.
  const PytorchRequest request = request_of(model, 4, 310_MiB);
  const auto plans = make_pytorch_plans(request, *workspaces);
  if (!plans) FAIL(render(plans.error()));
  const PytorchPlan& plan = named(*plans, "early-update").plan;
  CHECK(plan.early_updates);
  CHECK_FALSE(plan.optimizer_on_cpu);
  CHECK(plan.totals.to_host == Bytes());
  CHECK(plan.totals.from_host == Bytes());
  CHECK(plan.totals.pcie_lower_bound == Bytes());
  CHECK(plan.totals.peak_reserved <= request.plan.available);
  CHECK(std::ranges::none_of(*plans, [](const PytorchProposal& proposal) {
    return proposal.name.starts_with("early-update-");
  }));
}

TEST_CASE("the same request gives the same plans for PyTorch") {
  const PytorchRequest request = request_of("resnet18", 32, 600_MiB);
  const auto workspaces = rule_workspace_source(8.6);
  const auto first = make_pytorch_plans(request, *workspaces);
  const auto second = make_pytorch_plans(request, *workspaces);
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  REQUIRE(first->size() == second->size());
  for (std::size_t i = 0; i < first->size(); ++i) CHECK((*first)[i].plan == (*second)[i].plan);
}

TEST_CASE("micro-batches change a batch norm's training, and stand behind what does not") {
  const Bytes whole = reserved_with_everything("resnet18", 32);
  const auto workspaces = rule_workspace_source(8.6);
  const auto plans =
      make_pytorch_plans(request_of("resnet18", 32, Bytes(whole.count() / 10 * 7)), *workspaces);
  REQUIRE(plans.has_value());
  CHECK(plans->back().changes_training);
  CHECK(plans->back().name.starts_with("micro-batch-"));
  CHECK_FALSE(plans->front().changes_training);
}

TEST_CASE("the parameters of an inference are streamed by as few blocks as do") {
  const auto workspaces = rule_workspace_source(8.6);
  const ModelGraph model = testing::shipped("gpt2");
  std::int64_t blocks = 0;
  for (const Bytes left : {900_MiB, 700_MiB}) {
    const PytorchRequest request = request_of(model, 1, left, Mode::inference);
    const auto plans = make_pytorch_plans(request, *workspaces);
    if (!plans) FAIL(render(plans.error()));
    const PytorchPlan& plan = plans->front().plan;
    CAPTURE(plans->front().name);
    CHECK(plans->front().name.starts_with("stream-"));
    CHECK(plans->front().name.ends_with("-of-12"));
    CHECK_FALSE(plan.trains);
    CHECK_FALSE(plan.names_are_recorded);
    CHECK(std::ssize(plan.stream) > blocks);
    blocks = std::ssize(plan.stream);
    Bytes moved;
    for (const StreamedModule& module : plan.stream) {
      CHECK(module.uploads == 1);
      CHECK(module.parameters.size() == 12);
      CHECK(module.parameters.front() == module.module + ".ln_1.weight");
      moved += module.bytes;
    }
    CHECK(plan.totals.from_host == moved);
    CHECK(plan.totals.pinned == moved);
    CHECK(plan.totals.to_host == Bytes());
    CHECK((plan.totals.pcie_lower_bound > Bytes()) == (left == 700_MiB));
    CHECK(plan.totals.pcie_lower_bound < moved);
    CHECK(plan.totals.step_seconds >= plan.totals.step_lower_bound_seconds.value());
    CHECK(plan.totals.peak_reserved <= request.plan.available);
  }
  const auto none = make_pytorch_plans(request_of(model, 1, 300_MiB, Mode::inference), *workspaces);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().front().message.find("has no room for the inference: ") != std::string::npos);
  CHECK(none.error().front().hint ==
        "tried were the batch in parts and its blocks' parameters streamed");
  const auto resnet = make_pytorch_plans(
      request_of(testing::shipped("alexnet"), 1, 200_MiB, Mode::inference), *workspaces);
  REQUIRE_FALSE(resnet.has_value());
}

TEST_CASE("an inference runs in the fewest parts that fit") {
  const auto workspaces = rule_workspace_source(8.6);
  const ModelGraph model = testing::shipped("resnet18");
  std::int64_t parts = 1;
  for (const Bytes left : {320_MiB, 220_MiB}) {
    const PytorchRequest request = request_of(model, 96, left, Mode::inference);
    const auto plans = make_pytorch_plans(request, *workspaces);
    if (!plans) FAIL(render(plans.error()));
    const auto alone = std::ranges::find_if(
        *plans, [](const PytorchProposal& made) { return made.plan.stream.empty(); });
    REQUIRE(alone != plans->end());
    const PytorchProposal& proposal = *alone;
    CAPTURE(proposal.name);
    REQUIRE(proposal.plan.chunks.has_value());
    const InferenceChunks& chunks = *proposal.plan.chunks;
    CHECK(chunks.parts > parts);
    parts = chunks.parts;
    CHECK(proposal.name == "chunk-" + std::to_string(parts));
    CHECK(proposal.plan.batch == 96);
    CHECK(proposal.plan.stream.empty());
    CHECK(proposal.plan.totals.from_host == Bytes());
    CHECK(chunks.output == Shape{batch_symbol, 1000});
    CHECK(chunks.inputs == std::vector<Shape>{{batch_symbol, 3, 224, 224}});
    CHECK(proposal.remarks ==
          std::vector<std::string>{"each part is computed as a batch of " +
                                   std::to_string(96 / parts) +
                                   ", whose last bits may differ from the whole's"});
    CHECK(proposal.plan.totals.step_seconds > proposal.plan.totals.all_gpu_step_seconds);
  }
}

TEST_CASE("where streaming is not enough for a batch, it is for parts of it") {
  const auto workspaces = rule_workspace_source(8.6);
  const PytorchRequest request =
      request_of(testing::shipped("resnet18"), 96, 320_MiB, Mode::inference);
  const auto plans = make_pytorch_plans(request, *workspaces);
  if (!plans) FAIL(render(plans.error()));
  const auto both = std::ranges::find_if(
      *plans, [](const PytorchProposal& made) { return !made.plan.stream.empty(); });
  REQUIRE(both != plans->end());
  const PytorchPlan& plan = both->plan;
  CAPTURE(both->name);
  REQUIRE(plan.chunks.has_value());
  CHECK(both->name ==
        fmt::format("chunk-{}-stream-{}-of-8", plan.chunks->parts, plan.stream.size()));
  Bytes moved;
  for (const StreamedModule& module : plan.stream) moved += module.bytes * plan.chunks->parts;
  CHECK(plan.totals.from_host == moved);
  CHECK(plan.totals.from_host >= plan.totals.pcie_lower_bound);
  CHECK(plan.totals.pinned < moved);
}

TEST_CASE("a frozen base is streamed, alone, with checkpoints and with offloading") {
  const auto workspaces = rule_workspace_source(8.6);
  const auto source = find_model("gpt2", testing::source_path("/configs/models"));
  REQUIRE(source.has_value());
  const auto adapted =
      load_adapted(source->source, {.fine_tuning = {.lora = "r=4,targets=c_attn"}});
  if (!adapted) FAIL(render(adapted.error()));
  const ModelGraph& model = *adapted;
  std::set<std::string> endings;
  for (const Bytes left : {2280_MiB, 1880_MiB, 1380_MiB}) {
    const PytorchRequest request = request_of(model, 1, left);
    const auto plans = make_pytorch_plans(request, *workspaces);
    if (!plans) FAIL(render(plans.error()));
    for (const PytorchProposal& proposal : *plans) {
      const PytorchPlan& plan = proposal.plan;
      CAPTURE(proposal.name);
      CHECK(plan.totals.peak_reserved <= request.plan.available);
      CHECK(plan.totals.to_host + plan.totals.from_host >= plan.totals.pcie_lower_bound);
      CHECK(plan.totals.step_seconds >=
            plan.totals.step_lower_bound_seconds.value_or(0) * (1 - 1e-9));
      if (plan.stream.empty()) continue;
      endings.insert(proposal.name.substr(0, proposal.name.find("stream")) + "/" +
                     proposal.name.substr(proposal.name.find("-of-") + 6));
      CHECK(plan.checkpoint.size() == (proposal.name.starts_with("checkpoint-all-") ? 12 : 0));
      CHECK(plan.offload.empty() == !proposal.name.ends_with("-offload"));
      Bytes streamed, offloaded;
      for (const StreamedModule& module : plan.stream) streamed += module.bytes * module.uploads;
      for (const OffloadedStorage& storage : plan.offload) {
        offloaded += Bytes(storage.bytes.at(plan.batch));
      }
      CHECK(plan.totals.from_host == streamed + offloaded);
      CHECK(plan.totals.to_host == offloaded);
      for (const StreamedModule& module : plan.stream) {
        for (const std::string& name : module.parameters) {
          CHECK(name.find("lora") == std::string::npos);
        }
      }
    }
  }
  CHECK(endings == std::set<std::string>{"/", "/-offload", "checkpoint-all-/"});
}

TEST_CASE("what is no step of PyTorch's kernels is refused") {
  PytorchRequest request = request_of("resnet18", 32, 1_GiB);
  const auto workspaces = rule_workspace_source(8.6);
  const auto refusal = [&](const LoweringSettings& lowering, Runtime runtime) {
    request.plan.document =
        make_document(testing::shipped("resnet18"), {.lowering = lowering}, runtime, {}, step_alone)
            .value();
    const auto plans = make_pytorch_plans(request, *workspaces);
    REQUIRE_FALSE(plans.has_value());
    return plans.error().front().message;
  };
  CHECK(refusal({}, Runtime::stowage) == "a plan for PyTorch is of a step of PyTorch's kernels");
  CHECK(refusal({.kernels = KernelSet::pytorch, .micro_batches = 2}, Runtime::pytorch) ==
        "a plan for PyTorch is of one micro-batch: its decisions hold for each");
}

TEST_CASE("a card that holds no part of the step is told what is missing") {
  const auto workspaces = rule_workspace_source(8.6);
  const auto plans = make_pytorch_plans(request_of("gpt2", 1, 600_MiB), *workspaces);
  REQUIRE_FALSE(plans.has_value());
  const Diagnostic& why = plans.error().front();
  CHECK(why.message.find(" has no room for the step: ") != std::string::npos);
  CHECK(why.message.ends_with(" are missing at best"));
  CHECK(why.hint ==
        "tried were saved tensors on the host with none to all of the modules run again; the "
        "same with updates as gradients come; updates on the CPU with saved tensors on the host or "
        "modules run again; all of this with "
        "expandable segments of the allocator");
}

TEST_CASE("what a refused step lacks is enough beside the card, and a found plan is told of") {
  const auto workspaces = rule_workspace_source(8.6);
  Bytes missing;
  int told = 0;
  const ProposalOptions options{.has_plan = [&] { ++told; },
                                .missing = [&](Bytes lacked) { missing = lacked; }};
  const PytorchRequest small = request_of("gpt2", 2, 600_MiB);
  REQUIRE_FALSE(make_pytorch_plans(small, *workspaces, options).has_value());
  CHECK(missing > Bytes());
  CHECK(told == 0);
  const auto larger =
      make_pytorch_plans(request_of("gpt2", 2, 600_MiB + missing + 128_MiB), *workspaces, options);
  CHECK(larger.has_value());
  CHECK(told == 1);
}

TEST_CASE("where fragments cost copies, expandable segments are proposed, and gain") {
  const auto workspaces = rule_workspace_source(8.6);
  const auto plans = make_pytorch_plans(request_of("bert-base", 4, 2500_MiB), *workspaces);
  REQUIRE(plans.has_value());
  const auto is_expandable = [](const PytorchProposal& proposal) {
    return proposal.plan.expandable_segments;
  };
  REQUIRE(std::ranges::any_of(*plans, is_expandable));
  for (const PytorchProposal& proposal : *plans) {
    CAPTURE(proposal.name);
    CHECK(proposal.name.ends_with("-expandable") == is_expandable(proposal));
    if (!is_expandable(proposal)) continue;
    CHECK_FALSE(proposal.plan.changes_nothing());
    for (const PytorchProposal& other : *plans) {
      if (is_expandable(other) || other.plan.micro_batches > 1) continue;
      CHECK((proposal.plan.totals.step_seconds < other.plan.totals.step_seconds ||
             proposal.plan.totals.to_host + proposal.plan.totals.from_host <
                 other.plan.totals.to_host + other.plan.totals.from_host));
    }
  }
}

TEST_CASE("a process with expandable segments is planned with them at once") {
  PytorchRequest request = request_of("resnet18", 32, 600_MiB);
  request.process.allocator.expandable_segments = true;
  const auto workspaces = rule_workspace_source(8.6);
  const auto plans = make_pytorch_plans(request, *workspaces);
  REQUIRE(plans.has_value());
  for (const PytorchProposal& proposal : *plans) {
    CHECK(proposal.plan.expandable_segments);
    CHECK_FALSE(proposal.name.ends_with("-expandable"));
  }
}

TEST_CASE("the blocks of a network are the modules that can run again") {
  const PytorchRequest request = request_of("resnet18", 8, 8_GiB);
  const auto workspaces = rule_workspace_source(8.6);
  const auto step = size_step(request.plan.document.graph, 8, *workspaces);
  REQUIRE(step.has_value());
  const auto regions = module_regions(*step, make_rates(request.plan.card, request.plan.host));
  std::vector<std::string> names;
  for (const ModuleRegion& region : regions) {
    names.push_back(region.module);
    CHECK(region.saved > Bytes());
    CHECK(region.seconds > 0);
  }
  CHECK(names == std::vector<std::string>{"layer1.0", "layer1.1", "layer2.0", "layer2.1",
                                          "layer3.0", "layer3.1", "layer4.0", "layer4.1"});
}

}  // namespace stowage
