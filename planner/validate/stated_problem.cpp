#include "planner/validate/stated_problem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "estimator/step/saved_storages.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate/node_seconds.hpp"
#include "planner/validate/stays.hpp"

namespace stowage {

namespace {

Side side_pinned(Pin pin) {
  switch (pin) {
    case Pin::gpu:
      return Side::gpu;
    case Pin::cpu:
      return Side::away;
    case Pin::free:
      break;
  }
  return Side::open;
}

// The side of a node: that of its own pin, else that of the scope.
Side node_side(const Plan& plan, std::size_t node, const BoundScope& scope) {
  const Pin pin = plan.pins.of(NodeId::of(node));
  if (pin != Pin::free) return side_pinned(pin);
  const bool updates = plan.step.graph->nodes[node].phase == Phase::update;
  return (updates ? scope.updates_on_gpu : scope.compute_on_gpu) ? Side::gpu : Side::open;
}

bool is_kept_class(StorageClass storage_class, const BoundScope& scope) {
  switch (storage_class) {
    case StorageClass::parameter:
    case StorageClass::parameter_copy:
    case StorageClass::buffer:
      return scope.keep_weights;
    case StorageClass::optimizer_state:
    case StorageClass::gradient:
      return scope.keep_state;
    default:
      return scope.keep_activations;
  }
}

bool is_activation(StorageClass storage_class) {
  return is_kept_class(storage_class, {.keep_activations = true});
}

double copy_cost(const Plan& plan, StorageId storage, bool up, const CostRule& rule) {
  const double bytes = static_cast<double>(plan.bytes(storage).count());
  if (rule.bytes) return bytes;
  double seconds = 0;
  for (const Link& link : plan.machine.links) {
    const bool leads_up = plan.machine.memory(link.to).kind == MemoryKind::device;
    if (leads_up == up) seconds = link.latency + seconds_at(bytes, link.bandwidth);
  }
  return seconds * (up ? rule.uploads : rule.downloads);
}

class Statement {
 public:
  Statement(const Plan& plan, const BoundScope& scope, const CostRule& rule)
      : plan_(plan), scope_(scope), rule_(rule), saved_(kept_by_autograd(*plan.step.graph)) {}

  BoundProblem run() && {
    problem_.limit = plan_.inputs.budget.bytes.count();
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) add_node(i);
    if (plan_.certificate) add_workspaces();
    collect_touches();
    for (std::size_t i = 0; i < touches_.size(); ++i) {
      if (!touches_[i].empty()) add_item(StorageId::of(i));
    }
    return std::move(problem_);
  }

 private:
  void add_node(std::size_t index) {
    BoundNode node;
    double on_gpu = 0;
    for (const Processor& processor : plan_.machine.processors) {
      if (rule_.bytes) continue;
      const double seconds = node_seconds(plan_, index, processor);
      if (processor.kind == ProcessorKind::gpu) {
        on_gpu = rule_.gpu * seconds;
      } else {
        node.cpu_cost = rule_.cpu * seconds;
      }
    }
    node.engines = {{on_gpu, 0}};
    for (const StorageId temporary : plan_.step.graph->nodes[index].temporaries) {
      node.temporaries += in_granules(plan_.bytes(temporary));
    }
    node.side = node_side(plan_, index, scope_);
    problem_.nodes.push_back(std::move(node));
  }

  // check_least_workspaces() refuses the others.
  void add_workspaces() {
    for (const NodeWorkspace& each : plan_.certificate->workspaces) {
      if (each.node < 0 || each.node >= std::ssize(problem_.nodes)) continue;
      problem_.nodes[static_cast<std::size_t>(each.node)].engines.front().workspace =
          in_granules(each.least);
    }
  }

  // Whether a plan places the storage: temporaries belong to their node, and so do workspaces
  // unless nodes share them.
  [[nodiscard]] bool is_placed(StorageId storage) const {
    const StorageClass of = plan_.storage(storage).storage_class;
    if (of == StorageClass::workspace) return plan_.step.graph->kernel_set().shares_scratch;
    return of != StorageClass::temporary;
  }

  void collect_touches() {
    touches_.resize(plan_.step.graph->storages.size());
    const auto touch = [&](StorageId storage, std::int32_t step) -> BoundTouch& {
      std::vector<BoundTouch>& of = touches_[storage.index()];
      if (of.empty() || of.back().step != step) of.push_back({.step = step});
      return of.back();
    };
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
      const KernelNode& node = plan_.step.graph->nodes[i];
      const auto step = static_cast<std::int32_t>(i);
      for (const TensorView& view : node.reads) {
        if (is_placed(view.storage)) touch(view.storage, step).reads = true;
      }
      for (const TensorView& view : node.writes) {
        if (is_placed(view.storage)) touch(view.storage, step).writes = true;
      }
    }
  }

  void add_item(StorageId id) {
    const Storage& storage = plan_.storage(id);
    BoundItem item;
    item.number = id.value;
    item.bytes = in_granules(plan_.bytes(id));
    item.touches = std::move(touches_[id.index()]);
    const bool written = std::ranges::any_of(item.touches, &BoundTouch::writes);
    // A persistent value that the step does not make anew is there in the next step. It is needed
    // then, even where the first node only writes.
    item.goes_round = storage.persistence == Persistence::persistent &&
                      (!written || storage.carries_over || item.touches.front().reads);
    if (item.goes_round) item.touches.front().reads = true;
    item.host_at_start = item.goes_round ? !written : storage.persistence == Persistence::from_host;
    item.upload = copy_cost(plan_, id, true, rule_);
    item.download = copy_cost(plan_, id, false, rule_);
    item.gaps.resize(item.touches.size() - (item.goes_round ? 0 : 1), Side::open);
    const Pin pin = plan_.pins.of(id);
    for (std::size_t gap = 0; gap < item.gaps.size(); ++gap) {
      const BoundTouch& next = item.touches[item.after(gap)];
      if (pin == Pin::cpu) item.gaps[gap] = Side::away;
      if (pin == Pin::gpu && next.reads) item.gaps[gap] = Side::gpu;
      if (item.gaps[gap] != Side::open || !next.reads) continue;
      const bool between_pinned = is_on_gpu(item.touches[gap]) && is_on_gpu(next);
      const bool is_kept = is_kept_class(storage.storage_class, scope_) ||
                           (scope_.keep_unsaved && is_activation(storage.storage_class) &&
                            !is_of_autograd(id, item.touches[gap], next));
      if (between_pinned && is_kept) item.gaps[gap] = Side::gpu;
    }
    problem_.items.push_back(std::move(item));
  }

  // Whether autograd alone keeps the storage from the one touch to the other.
  [[nodiscard]] bool is_of_autograd(StorageId storage, const BoundTouch& from,
                                    const BoundTouch& to) const {
    const std::vector<KernelNode>& nodes = plan_.step.graph->nodes;
    return saved_[storage.index()] &&
           spans_to_backward(nodes[static_cast<std::size_t>(from.step)].phase,
                             nodes[static_cast<std::size_t>(to.step)].phase);
  }

  [[nodiscard]] bool is_on_gpu(const BoundTouch& touch) const {
    return problem_.nodes[static_cast<std::size_t>(touch.step)].side == Side::gpu;
  }

  /// The bytes rounded up to granules: no place on the GPU takes less.
  [[nodiscard]] std::int64_t in_granules(Bytes bytes) const {
    return plan_.certificate ? round_up(bytes, plan_.certificate->granule).count() : bytes.count();
  }

  const Plan& plan_;
  const BoundScope& scope_;
  const CostRule& rule_;
  std::vector<bool> saved_;                       // by storage
  std::vector<std::vector<BoundTouch>> touches_;  // by storage
  BoundProblem problem_;
};

}  // namespace

BoundProblem stated_problem(const Plan& plan, const BoundScope& scope, const CostRule& rule) {
  return Statement(plan, scope, rule).run();
}

std::string outside_scope(const Plan& plan, const BoundScope& scope) {
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (node_side(plan, i, scope) != Side::gpu) continue;
    if (device_of(plan, plan.nodes[i]) == Device::gpu) continue;
    return fmt::format("{} is on the CPU", step_label(plan, static_cast<std::int32_t>(i)));
  }
  const bool keeps_results = scope.keep_activations || scope.keep_unsaved;
  if (!keeps_results && !scope.keep_weights && !scope.keep_state) return {};
  const BoundProblem problem = stated_problem(plan, scope, {.bytes = true});
  const Stays stays(plan);
  for (const BoundItem& item : problem.items) {
    const StorageId storage{item.number};
    if (plan.pins.of(storage) != Pin::free) continue;  // held against the plan's pins elsewhere
    for (std::size_t gap = 0; gap < item.gaps.size(); ++gap) {
      if (item.gaps[gap] != Side::gpu) continue;
      const std::int32_t from = item.touches[gap].step, to = item.touches[item.after(gap)].step;
      const bool kept = gap + 1 < item.touches.size()
                            ? stays.stays_between(storage, from, to)
                            : stays.stays_over_step_end(storage, from, to);
      if (kept) continue;
      return fmt::format("{} is not kept from {} to {}", storage_label(plan, storage),
                         step_label(plan, from), step_label(plan, to));
    }
  }
  return {};
}

std::string scope_in_words(const BoundScope& scope) {
  std::vector<std::string_view> on_gpu, kept;
  if (scope.compute_on_gpu) on_gpu.emplace_back("compute");
  if (scope.updates_on_gpu) on_gpu.emplace_back("update");
  if (scope.keep_activations) kept.emplace_back("activations");
  if (scope.keep_unsaved) kept.emplace_back("all but saved activations");
  if (scope.keep_weights) kept.emplace_back("weights");
  if (scope.keep_state) kept.emplace_back("state");
  if (on_gpu.empty() && kept.empty()) return "plans with these pins";
  std::string words = "plans with these pins that";
  if (!on_gpu.empty()) words += fmt::format(" {} on the GPU", fmt::join(on_gpu, " and "));
  if (!kept.empty()) {
    words +=
        fmt::format("{} keep {} there", on_gpu.empty() ? "" : " and", fmt::join(kept, " and "));
  }
  return words;
}

}  // namespace stowage
