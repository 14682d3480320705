// The plan against its own description: loaded, lowered and sized again.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "estimator/base/hash.hpp"
#include "estimator/document/step_hash.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/step/lower.hpp"
#include "planner/validate/checks.hpp"

namespace stowage {

namespace {

// Lowering must cost no more than the plan is long: a plan of a few lines must not be able to ask
// for a `repeat:` times a number of micro-batches. Views alone are no kernel calls, so that a step
// has more operators than a plan has nodes, but not many times more.
constexpr std::int64_t most_operators_a_node = 16;
constexpr std::int64_t operators_of_any_plan = 1000;

LoweredAgain refused(std::string detail) {
  return {{"description", false, std::move(detail)}, std::nullopt};
}
LoweredAgain refused(std::string_view what, const Diagnostics& diagnostics) {
  return refused(fmt::format(
      "{}: {}", what, diagnostics.empty() ? "no reason given" : diagnostics.front().message));
}

// "cudnn 9.19.0" of "cudnn 9.19.0 eng0 k2=12": engines of two versions are not the same ones.
std::string_view cudnn_version(std::string_view engine) {
  if (!engine.starts_with("cudnn ")) return {};
  return engine.substr(0, engine.find(' ', 6));
}

// Whether the source that was handed in is the one that the plan's engines come from. A step
// without engines has nothing to tell sources apart by.
bool same_workspace_origin(const Plan& plan, const SizedStep& step) {
  std::vector<std::string_view> versions{{}};
  bool named_by_origin = true;  // "cudnn 9.19.0" for an origin names its engines
  for (const Engines& engines : step.engines) {
    for (const Engine& engine : engines) {
      if (versions.back() != cudnn_version(engine.name)) {
        versions.push_back(cudnn_version(engine.name));
      }
      if (!engine.name.starts_with(plan.inputs.workspace_origin + " ")) named_by_origin = false;
    }
  }
  if (!named_by_origin && plan.inputs.workspace_origin != to_string(step.workspace_origin)) {
    return false;
  }
  return std::all_of(plan.nodes.begin(), plan.nodes.end(), [&](const PlannedNode& node) {
    return std::find(versions.begin(), versions.end(), cudnn_version(node.engine)) !=
           versions.end();
  });
}

void compare_workspace(const PlannedNode& node, const Engines& engines, Violations& wrong) {
  if (engines.empty()) {
    if (node.workspace != Bytes{} || !node.engine.empty()) {
      wrong.note([&] {
        return fmt::format("'{}' takes a workspace of {} bytes (engine '{}'), but has no engines",
                           node.name, node.workspace.count(), node.engine);
      });
    }
    return;
  }
  const auto planned = std::find_if(engines.begin(), engines.end(), [&](const Engine& engine) {
    return engine.name == node.engine && engine.workspace == node.workspace;
  });
  if (planned != engines.end()) return;
  wrong.note([&] {
    return fmt::format("'{}' takes engine '{}' with {} bytes, which is none of its {} engines",
                       node.name, node.engine, node.workspace.count(), engines.size());
  });
}

// Whether the plan's pins keep this node on the GPU.
bool is_pinned(Pinned pinned, Phase phase) {
  return pinned == Pinned::all_nodes || (pinned == Pinned::computation && phase != Phase::update);
}

}  // namespace

LoweredAgain lower_again(const Plan& plan, WorkspaceSource& workspaces) {
  const PlanInputs& inputs = plan.inputs;
  if (hash_text(inputs.model_text) != inputs.model_hash) {
    return refused(fmt::format("its hash is {}, not {} as the plan says",
                               hash_text(inputs.model_text), inputs.model_hash));
  }
  const std::int64_t micro_batches = inputs.lowering.micro_batches;
  if (micro_batches < 1 || inputs.batch < 1 || inputs.batch % micro_batches != 0) {
    return refused(
        fmt::format("a batch of {} is not {} equal micro-batches", inputs.batch, micro_batches));
  }
  const auto source =
      std::make_shared<const SourceText>(SourceText{inputs.model_name, inputs.model_text});
  const Result<ModelGraph> model = load_model(source, inputs.model_options);
  if (!model) return refused("it does not load", model.error());
  const std::int64_t most_operators =
      operators_of_any_plan + most_operators_a_node * static_cast<std::int64_t>(plan.nodes.size());
  if (static_cast<std::int64_t>(model->operators.size()) > most_operators / micro_batches) {
    return refused(fmt::format("{} micro-batches of {} operators are no step of {} nodes",
                               micro_batches, model->operators.size(), plan.nodes.size()));
  }
  Result<StepGraph> graph = lower(*model, inputs.lowering);
  if (!graph) return refused("it cannot be lowered", graph.error());
  Result<SizedStep> step = size_step(std::make_shared<const StepGraph>(*std::move(graph)),
                                     inputs.batch / micro_batches, workspaces);
  if (!step) return refused("it cannot be sized", step.error());
  return {{"description", true,
           fmt::format("'{}', hash {}, batch {} in {} micro-batches", inputs.model_name,
                       inputs.model_hash, inputs.batch, micro_batches)},
          *std::move(step)};
}

std::vector<Check> compare_with_step(const Plan& plan, const SizedStep& step) {
  const StepGraph& graph = *step.graph;
  Violations nodes, storages, hash;
  if (plan.nodes.size() != graph.nodes.size()) {
    nodes.note([&] {
      return fmt::format("the plan has {} nodes, the description gives {}", plan.nodes.size(),
                         graph.nodes.size());
    });
  }
  for (std::size_t i = 0; i < std::min(plan.nodes.size(), graph.nodes.size()); ++i) {
    if (plan.nodes[i].name == graph.nodes[i].name) continue;
    nodes.note([&] {
      return fmt::format("step {} is '{}' in the plan, '{}' by the description", i,
                         plan.nodes[i].name, graph.nodes[i].name);
    });
  }
  if (plan.storages.size() != graph.storages.size()) {
    storages.note([&] {
      return fmt::format("the plan has {} storages, the description gives {}", plan.storages.size(),
                         graph.storages.size());
    });
  }
  for (std::size_t i = 0; i < std::min(plan.storages.size(), graph.storages.size()); ++i) {
    const PlannedStorage& planned = plan.storages[i];
    const Storage& storage = graph.storages[i];
    if (planned.name == storage.name && planned.storage_class == storage.storage_class &&
        planned.bytes == step.storage_bytes[i]) {
      continue;
    }
    storages.note([&] {
      return fmt::format(
          "storage {} is '{}' ({}, {} bytes) in the plan, '{}' ({}, {} bytes) by "
          "the description",
          i, planned.name, to_string(planned.storage_class), planned.bytes.count(), storage.name,
          to_string(storage.storage_class), step.storage_bytes[i].count());
    });
  }
  const std::string lowered = step_hash(step);
  if (lowered != plan.inputs.step_hash) {
    hash.note([&] {
      return fmt::format("the step's hash is {}, not {} as the plan says", lowered,
                         plan.inputs.step_hash);
    });
  }
  return {verdict("nodes", nodes, fmt::format("{} names in order", graph.nodes.size())),
          verdict("storages", storages,
                  fmt::format("{} names, classes and sizes", graph.storages.size())),
          verdict("step hash", hash, lowered)};
}

Check check_workspaces(const Plan& plan, const SizedStep& step) {
  const bool same = same_workspace_origin(plan, step);
  Violations wrong;
  std::int64_t compared = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlannedNode& node = plan.nodes[i];
    if (node.device == Device::cpu) {
      if (node.workspace == Bytes{}) continue;
      wrong.note([&] {
        return fmt::format("'{}' is on the CPU and takes a GPU workspace of {} bytes", node.name,
                           node.workspace.count());
      });
    } else if (same) {
      compare_workspace(node, step.engines[i], wrong);
      compared += step.engines[i].empty() ? 0 : 1;
    }
  }
  if (same) {
    return verdict("workspaces", wrong,
                   fmt::format("{} engines are among the source's ({})", compared,
                               plan.inputs.workspace_origin));
  }
  return verdict("workspaces not compared", wrong,
                 fmt::format("the plan's come from '{}', this source answers as '{}': taken as "
                             "planned",
                             plan.inputs.workspace_origin, to_string(step.workspace_origin)));
}

Check check_devices(const Plan& plan, const StepGraph& graph) {
  Violations wrong;
  std::int64_t on_gpu = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlannedNode& node = plan.nodes[i];
    if (node.device == Device::gpu) {
      ++on_gpu;
    } else if (is_pinned(plan.pinned, graph.nodes[i].phase)) {
      wrong.note([&] {
        return fmt::format("'{}' is on the CPU, but the plan pins {} to the GPU", node.name,
                           to_string(plan.pinned));
      });
    }
  }
  return verdict(
      "devices", wrong,
      fmt::format("{} nodes on the GPU, {} on the CPU, {} pinned", on_gpu,
                  static_cast<std::int64_t>(plan.nodes.size()) - on_gpu, to_string(plan.pinned)));
}

}  // namespace stowage
