#include "planner/pytorch/hooked_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "estimator/base/batch.hpp"
#include "estimator/check/batch_search.hpp"
#include "estimator/rewrite/inference_parts.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/rewrite/saved_on_host.hpp"
#include "estimator/rewrite/streamed_parameters.hpp"
#include "planner/pytorch/streamable_blocks.hpp"

namespace stowage {

namespace {

SharedStep shared_step(StepGraph&& graph) {
  return std::make_shared<const StepGraph>(std::move(graph));
}

Result<SharedStep> with_modules_run_again(const SharedStep& step,
                                          const std::vector<ModuleRegion>& modules) {
  if (modules.empty()) return step;
  Result<StepGraph> graph = *step;
  for (const bool inner : {true, false}) {
    std::vector<CheckpointRegion> regions;
    for (const ModuleRegion& module : modules) {
      if (module.is_inner == inner) regions.push_back(module.region);
    }
    std::ranges::sort(regions, {},
                      [](const CheckpointRegion& region) { return region.operators.front(); });
    if (graph) graph = with_checkpoints(*std::move(graph), regions);
  }
  return std::move(graph).map(shared_step);
}

const std::string& script_name(const StepDocument& document, const Storage& parameter) {
  const std::size_t id = parameter.parameter.index();
  return id < document.parameters.size() ? document.parameters[id].name : parameter.name;
}

/// The step with `count` blocks' parameters streamed, which are added to `stream`.
Result<SharedStep> with_blocks_streamed(const StepDocument& document, const SharedStep& step,
                                        std::size_t count, std::vector<StreamedModule>& stream) {
  const auto blocks = spread_blocks(streamable_blocks(document, *step), count);
  auto streamed = with_streamed_parameters(*step, blocks);
  if (!streamed) return tl::unexpected(std::move(streamed.error()));
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    StreamedModule module{.module = blocks[b].module,
                          .parameters = {},
                          .bytes = Bytes(streamed->pieces[b].bytes),
                          .uploads = streamed->pieces[b].uploads};
    for (const StorageId id : blocks[b].parameters) {
      module.parameters.push_back(script_name(document, step->storage(id)));
    }
    stream.push_back(std::move(module));
  }
  return shared_step(std::move(streamed->step));
}

}  // namespace

bool fits_safely(const CheckReport& report) { return report.fits && report.run.settles(); }

Result<HookedCase> hooked_case(const PytorchRequest& request, WorkspaceSource& workspaces,
                               const HookedChanges& changes) {
  const std::int64_t share = std::max(changes.micro_batches, changes.parts);
  const auto batch = micro_batch_of(request.plan.batch, share);
  if (!batch) {
    return failure(fmt::format("{} parts cannot share a batch of {} equally", share,
                               request.plan.batch.samples));
  }
  auto graph = with_modules_run_again(request.plan.document.graph, changes.modules);
  std::vector<StreamedModule> stream;
  if (graph && changes.streamed > 0) {
    graph = with_blocks_streamed(request.plan.document, *graph, changes.streamed, stream);
  }
  if (graph && changes.parts > 1) {
    graph = with_inference_parts(**graph, changes.parts).map(shared_step);
  }
  if (graph && !changes.updates.changes_nothing()) {
    graph = with_updates(**graph, changes.updates).map(shared_step);
  }
  if (!graph) return tl::unexpected(std::move(graph.error()));
  auto step = size_step(*std::move(graph), *batch, workspaces);
  if (!step) return tl::unexpected(std::move(step.error()));
  HookedCase result{.modules = {},
                    .stream = std::move(stream),
                    .micro_batches = changes.micro_batches,
                    .parts = changes.parts,
                    .updates = changes.updates,
                    .step = *std::move(step)};
  for (const ModuleRegion& module : changes.modules) result.modules.push_back(module.module);
  return result;
}

Result<CheckReport> check_hooked(const PytorchRequest& request, WorkspaceSource& workspaces,
                                 const HookedCase& of, const std::vector<SavedStay>& stays) {
  const auto checked = [&](const SizedStep& step) {
    CheckSettings settings = request.process;
    settings.reserve += usual_margin(*step.graph, request.plan.card, settings);
    return check(step, request.plan.card, settings);
  };
  if (stays.empty() && of.micro_batches == 1) return checked(of.step);
  Result<StepGraph> graph = *of.step.graph;
  if (!stays.empty()) graph = with_saved_on_host(*std::move(graph), stays);
  if (graph && of.micro_batches > 1) {
    graph = with_micro_batches(*std::move(graph), of.micro_batches);
  }
  if (!graph) return tl::unexpected(std::move(graph.error()));
  return size_step(std::make_shared<const StepGraph>(*std::move(graph)), of.step.batch, workspaces)
      .map(checked);
}

}  // namespace stowage
