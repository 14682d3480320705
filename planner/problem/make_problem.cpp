// make_problem: a step as the planner sees it.
#include <algorithm>
#include <cassert>

#include "estimator/arena/arena.hpp"
#include "estimator/step/saved_storages.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/problem/step_pins.hpp"
#include "planner/problem/versions.hpp"

namespace stowage {

namespace {

// Whether a plan places the storage. Workspaces come from a WorkspaceSource and temporaries belong
// to their node: both are memory of one operation. But scratch memory that nodes share lies between
// them and is placed.
bool is_placed(const StepGraph& graph, const Storage& storage) {
  if (storage.storage_class == StorageClass::workspace) return graph.kernel_set().shares_scratch;
  return storage.storage_class != StorageClass::temporary;
}

Pin pin_of(const KernelNode& node, NodeId id, const ProblemOptions& options) {
  const Pin asked = options.pins == nullptr ? Pin::free : options.pins->of(id);
  if (asked != Pin::free) return asked;
  if (options.devices != nullptr) {
    return (*options.devices)[id.index()] == Device::gpu ? Pin::gpu : Pin::cpu;
  }
  if (options.all_on_gpu) return Pin::gpu;
  if (node.phase == Phase::update) return options.updates_on_gpu ? Pin::gpu : Pin::free;
  return options.compute_on_gpu ? Pin::gpu : Pin::free;
}

// The roofline says nothing about which of a convolution's engines is faster, so they cost the same
// and the solver takes the first that fits: sources rank them best first.
std::vector<EngineCost> engines_of(const SizedStep& step, NodeId id, double seconds) {
  std::vector<EngineCost> engines;
  for (const Engine& engine : step.engines[id.index()]) {
    engines.push_back({seconds, round_up(engine.workspace, arena_alignment)});
  }
  if (engines.empty()) engines.push_back({seconds, Bytes()});
  return engines;
}

Operation operation_of(const SizedStep& step, const Rates& rates, const ProblemOptions& options,
                       NodeId id) {
  const KernelNode& node = step.graph->node(id);
  Operation operation;
  operation.name = node.name;
  operation.engines = engines_of(step, id, gpu_seconds(rates, step, id));
  operation.cpu_seconds = cpu_seconds(rates, step, id);
  for (const StorageId temporary : node.temporaries) {
    operation.temporaries += round_up(step.bytes(temporary), arena_alignment);
  }
  operation.pin = pin_of(node, id, options);
  return operation;
}

void touch(std::vector<Touch>& touches, std::int32_t step, bool writes) {
  if (touches.empty() || touches.back().step != step) touches.push_back({step, false, false});
  (writes ? touches.back().writes : touches.back().reads) = true;
}

Item item_of(const SizedStep& step, const Rates& rates, StorageId id, std::vector<Touch> touches) {
  const Storage& storage = step.graph->storage(id);
  const bool written =
      std::any_of(touches.begin(), touches.end(), [](const Touch& touch) { return touch.writes; });
  Item item;
  item.name = storage.name;
  const Bytes own = step.bytes(id);
  item.bytes = round_up(own, arena_alignment);
  item.padding = item.bytes - own;
  item.touches = std::move(touches);
  // A persistent item that the step does not make anew is there in the next step too.
  item.wraps = storage.persistence == Persistence::persistent &&
               (!written || storage.carries_over || item.touches.front().reads);
  // The value outlives the step although the first kernel to touch it only writes. That kernel
  // counts as a reader, as if it left part of the value unchanged.
  if (item.wraps) item.touches.front().reads = true;
  item.host_at_start = item.wraps ? !written : storage.persistence == Persistence::from_host;
  item.h2d_seconds = h2d_seconds(rates, own);
  item.d2h_seconds = d2h_seconds(rates, own);
  return item;
}

// A storage on the CPU is uploaded for each touch anew; one on the GPU stays through every gap that
// has a value to keep.
std::vector<GapPin> gap_pins_of(const Item& item, Pin pin) {
  if (pin == Pin::free) return {};
  std::vector<GapPin> pins;
  for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
    const std::size_t next = (static_cast<std::size_t>(gap) + 1) % item.touches.size();
    const bool kept = item.touches[next].reads;
    pins.push_back(pin == Pin::cpu ? GapPin::dropped : kept ? GapPin::resident : GapPin::free);
  }
  return pins;
}

bool is_kept(StorageClass storage_class, const ProblemOptions& options) {
  switch (storage_class) {
    case StorageClass::parameter:
    case StorageClass::parameter_copy:
    case StorageClass::buffer:
      return options.keep_weights;
    case StorageClass::optimizer_state:
    case StorageClass::gradient:
      return options.keep_state;
    default:
      return options.keep_activations || options.keep_unsaved;
  }
}

// Pins the item resident between operations that are pinned to the GPU, in gaps that the user's
// pins leave free and that `may_leave` does not except.
template <typename MayLeave>
void keep_on_gpu(const std::vector<Operation>& operations, const MayLeave& may_leave, Item& item) {
  item.gap_pins.resize(static_cast<std::size_t>(gap_count(item)), GapPin::free);
  const auto on_gpu = [&](const Touch& touch) {
    return operations[static_cast<std::size_t>(touch.step)].pin == Pin::gpu;
  };
  for (std::size_t gap = 0; gap < item.gap_pins.size(); ++gap) {
    const Touch& next = item.touches[(gap + 1) % item.touches.size()];
    if (item.gap_pins[gap] != GapPin::free || !next.reads) continue;
    if (may_leave(item.touches[gap], next)) continue;
    if (on_gpu(item.touches[gap]) && on_gpu(next)) item.gap_pins[gap] = GapPin::resident;
  }
}

Phase phase_at(const StepGraph& graph, const Touch& touch) {
  return graph.nodes[static_cast<std::size_t>(touch.step)].phase;
}

}  // namespace

ResidencyProblem make_problem(const SizedStep& step, const Rates& rates,
                              const ProblemOptions& options) {
  const StepGraph& graph = *step.graph;
  ResidencyProblem problem;
  const bool saved_may_leave = options.keep_unsaved && !options.keep_activations;
  const std::vector<bool> saved =
      saved_may_leave ? kept_by_autograd(graph) : std::vector<bool>(graph.storages.size());
  std::vector<std::vector<Touch>> touches(graph.storages.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& node = graph.nodes[i];
    const auto at = static_cast<std::int32_t>(i);
    problem.operations.push_back(operation_of(step, rates, options, NodeId::of(i)));
    for (const TensorView& view : node.reads) touch(touches[view.storage.index()], at, false);
    for (const TensorView& view : node.writes) touch(touches[view.storage.index()], at, true);
  }
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    if (touches[i].empty() || !is_placed(graph, graph.storages[i])) continue;
    const StorageId id = StorageId::of(i);
    problem.items.push_back(item_of(step, rates, id, std::move(touches[i])));
    if (options.pins != nullptr) {
      Item& item = problem.items.back();
      item.gap_pins = gap_pins_of(item, options.pins->of(id));
    }
    if (is_kept(graph.storages[i].storage_class, options)) {
      const auto may_leave = [&](const Touch& from, const Touch& to) {
        return saved[i] && spans_to_backward(phase_at(graph, from), phase_at(graph, to));
      };
      keep_on_gpu(problem.operations, may_leave, problem.items.back());
    }
    problem.storage_of.push_back(id);
  }
  assert(ill_formed(problem).empty());
  return problem;
}

}  // namespace stowage
