// Checks the plan's step against its hash, its pins, and the engines and workspaces that kernels
// may use.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "estimator/base/hash.hpp"
#include "estimator/document/step_hash.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/validate/checks.hpp"

namespace stowage {

namespace {

// The source of an engine: "cudnn 9.19.0" for "cudnn 9.19.0 eng0 k2=12", since engines of two
// versions differ; "rule" for "rule, without workspace"; "" for a name that no source uses.
std::string_view source_of_engine(std::string_view engine) {
  if (engine.starts_with("cudnn ")) return engine.substr(0, engine.find(' ', 6));
  for (const std::string_view name : {"rule", "pytorch"}) {
    if (!engine.starts_with(name)) continue;
    const std::string_view rest = engine.substr(name.size());
    if (rest.empty() || rest.front() == ' ' || rest.front() == ',') return name;
  }
  return {};
}

// The version of cuDNN among the engines; "" where there is none.
struct CudnnVersions {
  std::string_view first;
  bool is_mixed = false;
  void add(std::string_view engine) {
    const std::string_view version = source_of_engine(engine);
    if (!version.starts_with("cudnn ")) return;
    if (first.empty()) first = version;
    is_mixed = is_mixed || first != version;
  }
};

CudnnVersions versions_in(const Plan& plan) {
  CudnnVersions versions;
  for (const PlannedNode& node : plan.nodes) versions.add(node.engine);
  return versions;
}

CudnnVersions versions_in(const std::vector<Engines>& answers) {
  CudnnVersions versions;
  for (const Engines& engines : answers) {
    for (const Engine& engine : engines) versions.add(engine.name);
  }
  return versions;
}

// Why the node may not have this engine and workspace; "" where it may.
std::string engine_mistake(const PlannedNode& node, const KernelNode& kernel, Device device) {
  const bool has_one =
      !node.engine.empty() || node.workspace != Bytes{} || node.workspace_offset != Bytes{};
  if (device == Device::cpu) return has_one ? "is on the CPU" : "";
  if (!wants_workspace(kernel)) return has_one ? "has no choice of engines" : "";
  if (node.engine.empty()) return "has to choose an engine";
  return source_of_engine(node.engine).empty() ? "has an engine of no known source" : "";
}

// Whether the plan's pins keep this node on the GPU.
bool is_pinned(Pinned pinned, Phase phase) {
  return pinned == Pinned::all_nodes || (pinned == Pinned::computation && phase != Phase::update);
}

bool contains_engine(const PlannedNode& node, const Engines& engines) {
  return std::any_of(engines.begin(), engines.end(), [&](const Engine& engine) {
    return engine.name == node.engine && engine.workspace == node.workspace;
  });
}

bool has_engine_of(std::string_view asked, const Engines& engines) {
  return std::any_of(engines.begin(), engines.end(),
                     [&](const Engine& engine) { return source_of_engine(engine.name) == asked; });
}

// By node: the least workspace that the certificate claims for its engines.
std::vector<Bytes> certified_workspaces(const Plan& plan) {
  std::vector<Bytes> least(plan.nodes.size());
  if (!plan.certificate) return least;
  for (const NodeWorkspace& each : plan.certificate->workspaces) {
    const auto at = static_cast<std::size_t>(each.node);
    if (each.node >= 0 && at < least.size()) least[at] = each.least;
  }
  return least;
}

void check_certified(const Plan& plan, std::size_t node, Bytes least, const Engines& answers,
                     Violations& wrong) {
  for (const Engine& engine : answers) {
    if (engine.workspace >= least) continue;
    wrong.note([&] {
      return fmt::format(
          "the certificate has '{}' take {} bytes at least, its engine '{}' takes {}",
          plan.step.graph->nodes[node].name, least.count(), engine.name, engine.workspace.count());
    });
    return;
  }
}

}  // namespace

Check check_step_hash(const Plan& plan) {
  Violations wrong;
  const std::string counted = step_hash(plan.step);
  if (counted != plan.inputs.step_hash) {
    wrong.note([&] {
      return fmt::format("the step's hash is {}, not {} as the plan says", counted,
                         plan.inputs.step_hash);
    });
  }
  return verdict("step hash", wrong, counted);
}

Check check_description_hash(const Plan& plan) {
  const PlanInputs& inputs = plan.inputs;
  if (inputs.model_text.empty()) return {"description hash", true, "the plan holds no description"};
  Violations wrong;
  const std::string counted = hash_text(inputs.model_text);
  if (counted != inputs.model_hash) {
    wrong.note([&] {
      return fmt::format("the description's hash is {}, not {} as the plan says", counted,
                         inputs.model_hash);
    });
  }
  return verdict("description hash", wrong, counted);
}

Check check_engines(const Plan& plan) {
  Violations wrong;
  std::int64_t chosen = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlannedNode& node = plan.nodes[i];
    const KernelNode& kernel = plan.step.graph->nodes[i];
    const std::string mistake = engine_mistake(node, kernel, device_of(plan, node));
    if (!node.engine.empty()) ++chosen;
    if (mistake.empty()) continue;
    wrong.note([&] {
      return fmt::format("'{}' {}: engine '{}', workspace of {} bytes at {}", kernel.name, mistake,
                         node.engine, node.workspace.count(), node.workspace_offset.count());
    });
  }
  if (versions_in(plan).is_mixed) {
    wrong.note([] { return "the engines are of several versions of cuDNN"; });
  }
  return verdict("engines", wrong, fmt::format("{} nodes have chosen one", chosen));
}

Check check_workspaces(const Plan& plan, const std::vector<Engines>& answers) {
  const std::string_view planned = versions_in(plan).first;
  const std::string_view asked = versions_in(answers).first;
  Violations wrong;
  std::int64_t compared = 0, not_compared = 0;
  const std::vector<Bytes> certified = certified_workspaces(plan);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlannedNode& node = plan.nodes[i];
    if (planned == asked || has_engine_of(source_of_engine(node.engine), answers[i])) {
      check_certified(plan, i, certified[i], answers[i], wrong);
    }
    if (node.engine.empty()) continue;
    // Another version of cuDNN, or none, has other engines. Engines of other sources can be
    // compared.
    if (planned != asked && !has_engine_of(source_of_engine(node.engine), answers[i])) {
      ++not_compared;
      continue;
    }
    ++compared;
    if (contains_engine(node, answers[i])) continue;
    wrong.note([&] {
      return fmt::format("'{}' takes engine '{}' with {} bytes, which is none of its {} engines",
                         plan.step.graph->nodes[i].name, node.engine, node.workspace.count(),
                         answers[i].size());
    });
  }
  const std::string what = fmt::format("{} engines are among the source's", compared);
  if (not_compared == 0) return verdict("workspaces", wrong, what);
  return verdict(compared == 0 ? "workspaces not compared" : "workspaces", wrong,
                 fmt::format("{}; {} not compared: the plan's are of {}, the source at hand is {}",
                             what, not_compared, planned.empty() ? "no cuDNN" : planned,
                             asked.empty() ? "no cuDNN" : asked));
}

Check check_devices(const Plan& plan) {
  Violations wrong;
  std::int64_t on_gpu = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const KernelNode& kernel = plan.step.graph->nodes[i];
    if (device_of(plan, plan.nodes[i]) == Device::gpu) {
      ++on_gpu;
    } else if (is_pinned(plan.pinned, kernel.phase) && plan.pins.of(NodeId::of(i)) != Pin::cpu) {
      wrong.note([&] {
        return fmt::format("'{}' is on the CPU, but the plan pins {} to the GPU", kernel.name,
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
