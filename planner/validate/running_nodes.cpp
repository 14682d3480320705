#include "planner/validate/running_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "planner/plan/two_sides.hpp"

namespace stowage {

RunningNodes::RunningNodes(const Plan& plan)
    : plan_(plan), holds_(plan.step.graph->storages.size()) {}

/// The storages that a node touches, each once.
std::vector<RunningNodes::Touched> RunningNodes::touched_by(std::int32_t node) const {
  const KernelNode& kernel = plan_.kernel(NodeId{node});
  std::vector<Touched> touched;
  const auto add = [&](StorageId storage, bool writes) {
    const auto known = std::ranges::find(touched, storage, &Touched::storage);
    if (known == touched.end()) {
      touched.push_back({storage, writes});
    } else {
      known->writes = known->writes || writes;
    }
  };
  for (const TensorView& view : kernel.reads) add(view.storage, false);
  for (const TensorView& view : kernel.writes) add(view.storage, true);
  for (const StorageId temporary : kernel.temporaries) add(temporary, true);
  return touched;
}

// The CPU is one lane: nodes finish in the order of their issue. So only that order can be wrong.
void RunningNodes::issue(std::int32_t node) {
  ++issued_;
  if (window_of(plan_, NodeId{node}).length() > 1) ++beside_;
  for (const Touched& touched : touched_by(node)) {
    std::vector<Hold>& holds = holds_[touched.storage.index()];
    for (const Hold& hold : holds) {
      if (hold.node < node || (!hold.writes && !touched.writes)) continue;
      wrong_.note([&] {
        return fmt::format("{} is issued after {}, which comes later and touches {} as well",
                           step_label(plan_, node), step_label(plan_, hold.node),
                           storage_label(plan_, touched.storage));
      });
    }
    holds.push_back({node, touched.writes});
  }
}

void RunningNodes::finish(std::int32_t node) {
  for (const Touched& touched : touched_by(node)) {
    std::erase_if(holds_[touched.storage.index()],
                  [&](const Hold& hold) { return hold.node == node; });
  }
}

void RunningNodes::run(std::int32_t node) {
  for (const Touched& touched : touched_by(node)) {
    for (const Hold& hold : holds_[touched.storage.index()]) {
      if (!hold.writes && !touched.writes) continue;
      wrong_.note([&] {
        return fmt::format("{} touches {}, which {} {} meanwhile", step_label(plan_, node),
                           storage_label(plan_, touched.storage), step_label(plan_, hold.node),
                           hold.writes ? "writes" : "reads");
      });
    }
  }
}

// An upload only reads the host's copy, a download writes it.
void RunningNodes::start_copy(const Transfer& transfer, std::string_view label) {
  const bool writes = direction_of(plan_, transfer) == Direction::d2h;
  for (const Hold& hold : holds_[transfer.storage.index()]) {
    if (!hold.writes && !writes) continue;
    wrong_.note([&] {
      return fmt::format("{} begins while {} {} it", label, step_label(plan_, hold.node),
                         hold.writes ? "writes" : "reads");
    });
  }
}

Check RunningNodes::check() const {
  return verdict(
      "CPU windows", wrong_,
      fmt::format("{} of the CPU's {} nodes run beside others, and none of these touches "
                  "what they change",
                  beside_, issued_));
}

}  // namespace stowage
