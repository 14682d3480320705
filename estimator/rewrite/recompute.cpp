#include "estimator/rewrite/recompute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "estimator/base/kernel_set.hpp"
#include "estimator/rewrite/node_insertion.hpp"
#include "estimator/rewrite/renumber.hpp"
#include "estimator/rewrite/rerun_groups.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

std::string second_name(const std::string& name) { return unnumbered(name) + ".recomputed"; }

class Recomputation {
 public:
  Recomputation(StepGraph step, const RerunGroups& groups, const std::vector<Rerun>& schedule)
      : step_(std::move(step)),
        groups_(groups),
        schedule_(schedule),
        made_before_(groups.groups.size()) {}

  StepGraph run() && {
    change_saved();
    put_together();
    number_repetitions(step_.storages);
    number_repetitions(step_.nodes);
    return std::move(step_);
  }

 private:
  void make_copy(StorageId id) {
    Storage storage = step_.storage(id);
    storage.name = second_name(storage.name);
    const StorageId copy = StorageId::of(step_.storages.size());
    copy_[id] = copy;
    step_.script_holds.set(copy, step_.script_holds.of(id));
    step_.storages.push_back(std::move(storage));
  }

  // Makes new storages for the group's results and temporaries, once for each second run.
  void make_copies(const Rerun& rerun) {
    const auto group = static_cast<std::size_t>(rerun.group);
    if (made_before_[group] == rerun.before) return;
    made_before_[group] = rerun.before;
    for (const StorageId made : groups_.groups[group].makes) make_copy(made);
    for (const SecondRun& run : groups_.groups[group].runs) {
      for (const StorageId temporary : node_of(step_, run).temporaries) {
        if (groups_.group_of[temporary.index()] < 0) make_copy(temporary);
      }
    }
  }

  // StepGraph::saved lists the first micro-batch only. Recomputed results leave it, and the inputs
  // of recomputation join it.
  void change_saved() {
    std::set<StorageId> made, kept;
    for (const Rerun& rerun : schedule_) {
      const RerunGroup& group = groups_.groups[static_cast<std::size_t>(rerun.group)];
      made.insert(group.makes.begin(), group.makes.end());
    }
    std::erase_if(step_.saved,
                  [&](const SavedTensor& saved) { return made.contains(saved.storage); });
    for (const SavedTensor& saved : step_.saved) kept.insert(saved.storage);
    for (const Rerun& rerun : schedule_) {
      const KernelNode node = node_of(step_, rerun.run);
      if (node.micro_batch != 0) continue;
      for (const TensorView& read : node.reads) {
        if (!read.storage.valid() || made.contains(read.storage)) continue;
        if (step_.storage(read.storage).persistence == Persistence::persistent) continue;
        if (!kept.insert(read.storage).second) continue;
        step_.saved.push_back({node.op, read.storage, "recomputation input"});
      }
    }
  }

  void read_copies(KernelNode& node) const {
    const auto replace = [&](StorageId& id) {
      if (const auto found = copy_.find(id); found != copy_.end()) id = found->second;
    };
    for (TensorView& view : node.reads) replace(view.storage);
    for (TensorView& view : node.writes) replace(view.storage);
    for (StorageId& id : node.temporaries) replace(id);
    for (StorageId& id : node.holds) replace(id);
  }

  [[nodiscard]] KernelNode run_again(SecondRun run) const {
    KernelNode node = node_of(step_, run);
    node.name = second_name(node.name);
    node.phase = Phase::backward;
    read_copies(node);
    return node;
  }

  void put_together() {
    NodeInsertion nodes(step_.nodes.size(), schedule_.size());
    auto next = schedule_.begin();
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      for (; next != schedule_.end() && next->before == NodeId::of(n); ++next) {
        make_copies(*next);
        nodes.insert(run_again(next->run));
      }
      KernelNode& node = nodes.keep(step_.nodes[n]);
      if (node.phase == Phase::backward) read_copies(node);
    }
    std::move(nodes).put_into(step_);
    renumber_convolutions(step_);
  }

  StepGraph step_;
  const RerunGroups& groups_;
  const std::vector<Rerun>& schedule_;
  std::vector<NodeId> made_before_;  // by group: the node before which its latest copies are made
  std::map<StorageId, StorageId> copy_;  // by storage of the forward pass: its latest copy
};

std::string recomputation_problem(const StepGraph& step) {
  if (!step.kernel_set().executable) {
    return fmt::format("its kernels are those of {}, which decides itself what it keeps",
                       step.kernel_set().name);
  }
  if (!step.settings.recomputed.empty()) return "it has recomputed values already";
  return {};
}

}  // namespace

/// Finds the group of kernels of each value, schedules their second runs as late as possible,
/// checks that their arguments are unchanged by then, and rewrites the step.
Result<StepGraph> with_recomputation(StepGraph step, std::vector<RecomputedValue> values) {
  if (values.empty() || step.settings.mode != Mode::train) return step;
  const auto refused = [&](std::string_view why) {
    return failure(fmt::format("values of '{}' cannot be recomputed: {}", step.model, why));
  };
  if (const std::string problem = recomputation_problem(step); !problem.empty()) {
    return refused(problem);
  }
  std::unordered_map<std::string_view, std::size_t> storage_called, node_called;
  for (std::size_t i = 0; i < step.storages.size(); ++i) {
    storage_called.emplace(step.storages[i].name, i);
  }
  for (std::size_t i = 0; i < step.nodes.size(); ++i) {
    if (step.nodes[i].phase == Phase::backward) node_called.emplace(step.nodes[i].name, i);
  }
  const RerunGroups groups = rerun_groups(step);
  std::vector<bool> chosen(groups.groups.size(), false);
  std::vector<Renewal> renewals;
  for (const auto& [value, before] : values) {
    const auto found = storage_called.find(value);
    if (found == storage_called.end()) {
      return refused(fmt::format("there is no storage '{}'", value));
    }
    const std::int32_t group = groups.group_of[found->second];
    if (group < 0) return refused(fmt::format("the kernel that makes '{}' runs once", value));
    chosen[static_cast<std::size_t>(group)] = true;
    if (before.empty()) continue;
    const auto node = node_called.find(before);
    if (node == node_called.end()) {
      return refused(fmt::format("there is no backward node '{}'", before));
    }
    renewals.push_back({group, NodeId::of(node->second)});
  }
  const std::vector<Rerun> schedule = rerun_schedule(step, groups, chosen, renewals);
  if (const Rerun* late = first_late_rerun(groups, schedule)) {
    return refused(
        fmt::format("what '{}' reads has changed by then", step.node(late->run.node).name));
  }
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  StepGraph result = Recomputation(std::move(step), groups, schedule).run();
  result.settings.recomputed = std::move(values);
  return result;
}

}  // namespace stowage
