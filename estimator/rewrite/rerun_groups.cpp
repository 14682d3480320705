#include "estimator/rewrite/rerun_groups.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace stowage {

namespace {

bool is_forward_pass(const KernelNode& node) {
  return node.phase == Phase::forward || node.phase == Phase::loss;
}

bool may_run_twice(const KernelNode& node) {
  return is_forward_pass(node) && node.kernel != Kernel::foreign &&
         node.kernel != Kernel::custom_forward;
}

bool writes_to(const KernelNode& node, StorageId id) {
  return std::ranges::any_of(node.writes,
                             [&](const TensorView& view) { return view.storage == id; });
}

/// Whether the kernel only updates the storage (running statistics), and none of its results
/// depends on it.
bool only_updates(const KernelNode& node, StorageId id) {
  return node.kernel == Kernel::batch_norm_forward && writes_to(node, id);
}

/// A union-find structure of nodes; nodes with a common root are one group.
class Unions {
 public:
  explicit Unions(std::size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

class Grouping {
 public:
  explicit Grouping(const StepGraph& step)
      : step_(step),
        unions_(step.nodes.size()),
        writers_(step.storages.size()),
        barred_(step.nodes.size(), false),
        until_(step.nodes.size()) {}

  RerunGroups run() && {
    find_writers();
    bar_what_may_not_run_twice();
    bar_what_must_stay();
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) check_reads(n);
    return put_together();
  }

 private:
  void find_writers() {
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      const std::vector<TensorView>& writes = step_.nodes[n].writes;
      for (std::size_t w = 0; w < writes.size(); ++w) {
        if (!writes[w].storage.valid()) continue;
        std::vector<std::size_t>& of = writers_[writes[w].storage.index()];
        const bool again = is_transient(writes[w]) && is_made_again(step_.nodes[n], w);
        if (again && !of.empty()) unions_.join(of.front(), n);
        if (of.empty() || of.back() != n) of.push_back(n);
      }
    }
  }

  [[nodiscard]] bool is_transient(const TensorView& view) const {
    return step_.storage(view.storage).persistence == Persistence::transient;
  }

  void bar(std::size_t node) { barred_[unions_.root(node)] = true; }
  void bar_writers(StorageId id) {
    if (!id.valid()) return;
    for (const std::size_t n : writers_[id.index()]) bar(n);
  }

  void bar_others(StorageId id, std::size_t node) {
    for (const std::size_t n : writers_[id.index()]) {
      if (unions_.root(n) != unions_.root(node)) bar(n);
    }
  }

  void bar_what_may_not_run_twice() {
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      const KernelNode& node = step_.nodes[n];
      if (!may_run_twice(node)) bar(n);
      for (std::size_t w = 0; w < node.writes.size(); ++w) {
        const TensorView& view = node.writes[w];
        if (!view.storage.valid()) continue;
        if (!is_transient(view)) {
          if (!only_updates(node, view.storage)) bar(n);
        } else if (!is_made_again(node, w)) {
          bar_others(view.storage, n);  // what they made is no longer there
        }
      }
    }
  }

  void bar_what_must_stay() {
    for (std::size_t i = 0; i < step_.storages.size(); ++i) {
      const Storage& storage = step_.storages[i];
      if (storage.persistence != Persistence::transient) continue;
      if (step_.script_holds.of(StorageId::of(i)).outlives_step()) bar_writers(StorageId::of(i));
    }
    for (const auto* views : {&step_.inputs, &step_.losses, &step_.gradients}) {
      for (const TensorView& view : *views) bar_writers(view.storage);
    }
    bar_writers(step_.output.storage);
  }

  // The inputs of a group from outside must be unchanged when it runs again.
  void check_reads(std::size_t n) {
    const KernelNode& node = step_.nodes[n];
    for (const TensorView& view : node.reads) {
      if (!view.storage.valid()) continue;
      const std::vector<std::size_t>& writers = writers_[view.storage.index()];
      const auto next = std::upper_bound(writers.begin(), writers.end(), n);
      if (next == writers.end() || only_updates(node, view.storage)) continue;
      const bool transient = is_transient(view);
      if (transient && unions_.root(*next) == unions_.root(n)) continue;  // a step of the chain
      if (transient) bar(*next);  // its second run would be done before this reads
      if (is_forward_pass(step_.nodes[*next])) bar(n);
      NodeId& until = until_[unions_.root(n)];
      if (!until.valid() || NodeId::of(*next) < until) until = NodeId::of(*next);
    }
  }

  RerunGroups put_together() {
    RerunGroups result;
    result.group_of.assign(step_.storages.size(), -1);
    std::vector<std::int32_t> of_root(step_.nodes.size(), -1);
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      const std::size_t root = unions_.root(n);
      if (barred_[root] || !is_forward_pass(step_.nodes[n])) continue;
      if (of_root[root] < 0) {
        of_root[root] = static_cast<std::int32_t>(result.groups.size());
        result.groups.push_back({.nodes = {}, .runs = {}, .makes = {}, .until = until_[root]});
      }
      RerunGroup& group = result.groups[static_cast<std::size_t>(of_root[root])];
      group.nodes.push_back(NodeId::of(n));
      for (std::size_t w = 0; w < step_.nodes[n].writes.size(); ++w) {
        const TensorView& view = step_.nodes[n].writes[w];
        if (!view.storage.valid() || !is_made_again(step_.nodes[n], w)) continue;
        if (!is_transient(view)) continue;
        std::int32_t& maker = result.group_of[view.storage.index()];
        if (maker < 0) group.makes.push_back(view.storage);
        maker = of_root[root];
      }
    }
    for (RerunGroup& group : result.groups) group.runs = second_runs(step_, group.nodes);
    return result;
  }

  const StepGraph& step_;
  Unions unions_;                                  // of nodes
  std::vector<std::vector<std::size_t>> writers_;  // by storage, ascending
  std::vector<bool> barred_;                       // by root
  std::vector<NodeId> until_;                      // by root
};

}  // namespace

RerunGroups rerun_groups(const StepGraph& step) { return Grouping(step).run(); }

std::vector<Rerun> rerun_schedule(const StepGraph& step, const RerunGroups& groups,
                                  const std::vector<bool>& chosen,
                                  const std::vector<Renewal>& renewals) {
  std::vector<Rerun> schedule;
  std::vector<std::vector<std::int32_t>> renewed(step.nodes.size());  // groups
  for (const Renewal& renewal : renewals) renewed[renewal.before.index()].push_back(renewal.group);
  std::vector<bool> has_run(groups.groups.size(), false);  // and what it made is there
  std::vector<bool> has_run_before(groups.groups.size(), false);
  std::vector<std::int32_t> wanted;  // groups, by turns
  const auto want = [&](StorageId id) {
    const std::int32_t group = id.valid() ? groups.group_of[id.index()] : -1;
    if (group < 0 || !chosen[static_cast<std::size_t>(group)]) return;
    if (has_run[static_cast<std::size_t>(group)]) return;
    has_run[static_cast<std::size_t>(group)] = true;
    wanted.push_back(group);
  };
  for (std::size_t n = 0; n < step.nodes.size(); ++n) {
    const KernelNode& node = step.nodes[n];
    if (node.phase != Phase::backward) continue;
    for (const std::int32_t group : renewed[n]) has_run[static_cast<std::size_t>(group)] = false;
    wanted.clear();
    for (const TensorView& view : node.reads) want(view.storage);
    for (const StorageId id : node.holds) want(id);
    const std::size_t first = schedule.size();
    for (std::size_t next = 0; next < wanted.size(); ++next) {
      const auto group = static_cast<std::size_t>(wanted[next]);
      for (const SecondRun& again : groups.groups[group].runs) {
        schedule.push_back({NodeId::of(n), again, wanted[next], has_run_before[group]});
        for (const TensorView& view : node_of(step, again).reads) want(view.storage);
      }
      has_run_before[group] = true;
    }
    std::sort(schedule.begin() + static_cast<std::ptrdiff_t>(first), schedule.end(),
              [](const Rerun& a, const Rerun& b) { return a.run.node < b.run.node; });
  }
  return schedule;
}

const Rerun* first_late_rerun(const RerunGroups& groups, const std::vector<Rerun>& schedule) {
  for (const Rerun& rerun : schedule) {
    const NodeId until = groups.groups[static_cast<std::size_t>(rerun.group)].until;
    if (until.valid() && until < rerun.before) return &rerun;
  }
  return nullptr;
}

}  // namespace stowage
