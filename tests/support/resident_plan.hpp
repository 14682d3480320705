// A plan without a planner: everything has a place of its own for the whole step, the inputs are
// uploaded at its start. Every launch and every copy takes one second, whatever its size.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "estimator/arena/arena.hpp"
#include "estimator/base/hash.hpp"
#include "estimator/document/step_hash.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// Answers every question with two engines, one of `workspace` bytes.
class TwoEngines : public WorkspaceSource {
 public:
  explicit TwoEngines(Bytes workspace) : workspace_(workspace) {}
  WorkspaceAnswer engines(const ConvolutionQuery&) override {
    return {{{"rule", workspace_}, {"rule, without workspace", 0_B}}, WorkspaceOrigin::rule};
  }

 private:
  Bytes workspace_;
};

/// The seconds of the step where memory is no matter: a node waits for the inputs that it reads,
/// which come one after the other.
inline double unlimited_seconds(const StepGraph& graph) {
  double uploaded = 0, reached = 0;
  std::vector<bool> is_there(graph.storages.size(), false);
  for (const KernelNode& node : graph.nodes) {
    for (const TensorView& view : node.reads) {
      const Storage& storage = graph.storage(view.storage);
      if (storage.persistence != Persistence::from_host || is_there[view.storage.index()]) continue;
      is_there[view.storage.index()] = true;
      reached = std::max(reached, uploaded += 1);
    }
    reached += 1;
  }
  return reached;
}

inline Plan resident_plan(const std::string& text, std::int64_t batch, WorkspaceSource& source) {
  Plan plan;
  plan.name = "resident";
  PlanInputs& inputs = plan.inputs;
  inputs.model_name = "test.yaml";
  inputs.model_text = text;
  inputs.model_hash = hash_text(text);
  const auto model =
      load_model(std::make_shared<const SourceText>(SourceText{"test.yaml", text})).value();
  const LoweringSettings lowering{.optimizer = model.optimizer};
  auto graph = std::make_shared<const StepGraph>(lower_step(model, lowering).value());
  const SizedStep step = size_step(graph, batch, source).value();
  plan.step = size_storages(graph, batch).value();
  plan.document.runtime = Runtime::stowage;
  plan.document.parameters = model.parameters;
  inputs.step_hash = step_hash(step);
  plan.machine =
      gpu_and_host({.gpu_launch = 1, .cpu_launch = 1, .h2d_latency = 1, .d2h_latency = 1});

  const auto steps = static_cast<std::int32_t>(graph->nodes.size());
  Bytes end, live, workspace;
  for (std::size_t i = 0; i < graph->storages.size(); ++i) {
    const Storage& storage = graph->storages[i];
    const Bytes bytes = step.storage_bytes[i];
    plan.in(gpu_memory).push_back({StorageId::of(i), {0, steps}, end});
    end += round_up(bytes, arena_alignment);
    live += bytes;
    if (storage.persistence != Persistence::from_host) continue;
    plan.in(pinned_memory).push_back({StorageId::of(i), {0, 1}, plan.totals.host_peak});
    plan.totals.host_peak += round_up(bytes, arena_alignment);
    plan.transfers.push_back({StorageId::of(i), upload_link, 0, 0});
    plan.totals.h2d += bytes;
  }
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    PlannedNode node{.processor = gpu_processor};
    if (!step.engines[i].empty()) {
      node.engine = step.engines[i].front().name;
      node.workspace = step.engines[i].front().workspace;
      node.workspace_offset = end;
      workspace = std::max(workspace, node.workspace);
    }
    plan.nodes.push_back(std::move(node));
  }
  PlanTotals& totals = plan.totals;
  totals.gpu_peak = live + workspace;
  totals.arena = totals.arena_lower_bound = end + round_up(workspace, arena_alignment);
  inputs.budget = totals.arena;
  totals.cost_seconds = static_cast<double>(plan.nodes.size() + plan.transfers.size());
  totals.cost_lower_bound_seconds = totals.all_gpu_cost_seconds = totals.cost_seconds;
  totals.step_seconds = totals.cost_seconds;
  totals.all_gpu_step_seconds = unlimited_seconds(*graph);
  totals.pcie_lower_bound = totals.h2d;
  totals.proved_optimal = true;
  return plan;
}

}  // namespace stowage
