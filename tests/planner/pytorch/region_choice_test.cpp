// Which modules, and which rows of an nn.Sequential's children, are chosen to run again.
#include "planner/pytorch/region_choice.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "estimator/document/make_document.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/recorded/complete_step.hpp"
#include "estimator/rewrite/checkpoints.hpp"
#include "estimator/step/saved_storages.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/problem/rates.hpp"
#include "planner/pytorch/saved_moments.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

struct Chosen {
  SizedStep step;
  RegionChoice choice;
};

StepDocument trained(const std::string& model) {
  return make_document(testing::shipped(model),
                       {.lowering = {.kernels = KernelSet::pytorch, .mode = Mode::train}},
                       Runtime::pytorch, {}, step_alone)
      .value();
}

/// The modules that a recording of the model would name: all that its layers' paths have, with the
/// stages as nn.Sequential.
std::vector<RecordedModule> modules_of(const StepGraph& step) {
  std::vector<RecordedModule> modules{{.path = "ResNet"}};
  std::set<std::string> seen;
  for (const KernelNode& node : step.nodes) {
    if (node.phase != Phase::forward) continue;
    const std::string path(step.layer(node.op));
    for (std::size_t dot = path.find('.');; dot = path.find('.', dot + 1)) {
      const std::string part = path.substr(0, dot);
      const bool is_stage = part.starts_with("layer") && part.find('.') == std::string::npos;
      if (!part.empty() && seen.insert(part).second) {
        modules.push_back({.path = part, .is_sequence = is_stage});
      }
      if (dot == std::string::npos) break;
    }
  }
  return modules;
}

Chosen chosen_of(const std::string& model, bool with_modules) {
  const StepDocument document = trained(model);
  const auto workspaces = rule_workspace_source(8.6);
  auto step = size_step(document.graph, 8, *workspaces);
  REQUIRE(step.has_value());
  const auto modules = with_modules ? modules_of(*document.graph) : std::vector<RecordedModule>();
  RegionChoice choice =
      choose_regions(*step, make_rates(generic_card(8_GiB), {.name = "test"}), modules);
  return {*std::move(step), std::move(choice)};
}

std::vector<CheckpointRegion> rewritten(const std::vector<ModuleRegion>& regions, bool inner) {
  std::vector<CheckpointRegion> found;
  for (const ModuleRegion& region : regions) {
    if (region.is_inner == inner) found.push_back(region.region);
  }
  return found;
}

Bytes kept_bytes(const SizedStep& step, const StepGraph& graph) {
  std::set<StorageId> all;
  Bytes bytes;
  for (const SavedTensor& saved : graph.saved) {
    const bool persists = graph.storage(saved.storage).persistence == Persistence::persistent;
    if (!persists && all.insert(saved.storage).second) bytes += step.bytes(saved.storage);
  }
  return bytes;
}

}  // namespace

TEST_CASE("without a recording's modules the repeated blocks are chosen, with their inputs") {
  const auto [step, choice] = chosen_of("gpt2", false);
  REQUIRE(choice.regions.size() == 12);
  CHECK(choice.nested.empty());
  for (const ModuleRegion& region : choice.regions) {
    CAPTURE(region.module);
    REQUIRE(region.region.inputs.size() == 1);
    const SavedCall& input = region.region.inputs.front();
    CHECK(input.key == region.module + "#input0");
    CHECK(input.view.shape == Shape{batch_symbol, 1024, 768});
    CHECK(input.packed_after.valid());
  }
}

TEST_CASE("beside a description's regions the tensors of other layers leave, too") {
  const auto [step, choice] = chosen_of("gpt2", false);
  const auto graph =
      with_checkpoints(*step.graph, {choice.regions[0].region, choice.regions[1].region});
  REQUIRE(graph.has_value());
  const std::vector<bool> kept = kept_by_autograd(*graph);
  CHECK(std::ranges::any_of(graph->saved, [&](const SavedTensor& saved) {
    return !saved.call && saved.role != region_input_role && kept[saved.storage.index()];
  }));
  CHECK_FALSE(has_recorded_keys(*graph));
  const auto moments = saved_moments(*graph);
  const auto has_key = [&](std::string_view begin) {
    return std::ranges::any_of(
        moments, [&](const SavedMoment& moment) { return moment.key.starts_with(begin); });
  };
  CHECK(has_key(choice.regions[1].module + "#input0"));
  CHECK(has_key(choice.regions[2].module + "."));
  CHECK_FALSE(has_key(choice.regions[1].module + "."));
}

TEST_CASE("a recording that does not name its modules does not say what regions are given") {
  const std::string path = testing::source_path("/tests/recorded/stages.json");
  const auto document = read_completed_step(
      std::make_shared<const SourceText>(SourceText{path, testing::file_text(path)}));
  REQUIRE(document.has_value());
  REQUIRE(has_recorded_keys(*document->graph));
  const auto workspaces = rule_workspace_source(8.6);
  const auto step = size_step(document->graph, 8, *workspaces);
  REQUIRE(step.has_value());
  const RegionChoice choice =
      choose_regions(*step, make_rates(generic_card(8_GiB), {.name = "test"}), {});
  REQUIRE_FALSE(choice.regions.empty());
  for (const ModuleRegion& region : choice.regions) CHECK(region.region.inputs.empty());
}

TEST_CASE("regions of a tree are apart, and what is kept with them is less than with its blocks") {
  for (const std::string model : {"resnet18", "resnet50", "resnet152"}) {
    CAPTURE(model);
    const auto [step, choice] = chosen_of(model, true);
    REQUIRE_FALSE(choice.regions.empty());
    std::set<OperatorId> operators;
    Bytes largest;
    for (const ModuleRegion& region : choice.regions) {
      CAPTURE(region.module);
      CHECK_FALSE(region.is_inner);
      CHECK(region.saved > Bytes());
      CHECK(region.seconds > 0);
      largest = std::max(largest, region.saved);
      for (const OperatorId op : region.region.operators) CHECK(operators.insert(op).second);
    }
    const auto graph = with_checkpoints(*step.graph, rewritten(choice.regions, false));
    REQUIRE(graph.has_value());
    const auto rates = make_rates(generic_card(8_GiB), {.name = "test"});
    const auto blocks = module_regions(step, rates);
    Bytes largest_block;
    for (const ModuleRegion& block : blocks) largest_block = std::max(largest_block, block.saved);
    const auto by_block = with_checkpoints(*step.graph, rewritten(blocks, false));
    REQUIRE(by_block.has_value());
    const Bytes of_tree = kept_bytes(step, *graph) + largest;
    const Bytes of_blocks = kept_bytes(step, *by_block) + largest_block;
    CHECK(of_tree.count() <= of_blocks.count() / 100 * 103);
  }
}

TEST_CASE("inner regions lie in outer ones, and are rewritten before them") {
  const auto [step, choice] = chosen_of("resnet152", true);
  REQUIRE_FALSE(choice.nested.empty());
  std::set<OperatorId> outer, inner;
  for (const ModuleRegion& region : choice.nested) {
    CHECK((region.is_inner ? region.region.inputs.empty() : true));
    auto& operators = region.is_inner ? inner : outer;
    for (const OperatorId op : region.region.operators) CHECK(operators.insert(op).second);
  }
  CHECK(std::ranges::includes(outer, inner));
  auto graph = with_checkpoints(*step.graph, rewritten(choice.nested, true));
  REQUIRE(graph.has_value());
  const auto nested = with_checkpoints(*graph, rewritten(choice.nested, false));
  REQUIRE(nested.has_value());
  const auto alone = with_checkpoints(*step.graph, rewritten(choice.regions, false));
  REQUIRE(alone.has_value());
  CHECK(kept_bytes(step, *nested) < kept_bytes(step, *alone));
}

}  // namespace stowage
