#include "planner/pytorch/module_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "estimator/step/saved_storages.hpp"

namespace stowage {

namespace {

constexpr std::int32_t nothing_overwritten = std::numeric_limits<std::int32_t>::max();

bool is_of_forward(const KernelNode& node) {
  return node.phase == Phase::forward || node.phase == Phase::loss;
}

/// "a.b" of "a.b.c"; "": there is none.
std::string_view parent_path(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

ModuleTree::ModuleTree(const SizedStep& step, const Rates& rates,
                       const std::vector<RecordedModule>& modules)
    : step_(step),
      made_(step.graph->storages.size(), -1),
      last_written_(step.graph->storages.size(), -1),
      saves_written_(step.graph->nodes.size(), false) {
  const StepGraph& graph = *step.graph;
  seconds_before_.push_back(0);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const KernelNode& node = graph.nodes[n];
    std::int32_t oldest = nothing_overwritten;
    const bool is_forward = is_of_forward(node);
    for (const TensorView& view : node.writes) {
      std::int32_t& made = made_[view.storage.index()];
      const bool persists = graph.storage(view.storage).persistence == Persistence::persistent;
      const bool reads =
          std::ranges::find(node.reads, view.storage, &TensorView::storage) != node.reads.end();
      if (is_forward && !persists && (reads || made >= 0)) oldest = std::min(oldest, made);
      if (made < 0 && is_forward) made = static_cast<std::int32_t>(n);
      if (is_forward) last_written_[view.storage.index()] = static_cast<std::int32_t>(n);
    }
    overwritten_.push_back(oldest);
    seconds_before_.push_back(seconds_before_.back() +
                              (is_forward ? gpu_seconds(rates, step, NodeId::of(n)) : 0));
  }
  find_saved();
  add_modules(modules);
  find_ranges();
}

// The root of a single model has its class's name, which begins no other path: it is above all.
void ModuleTree::add_modules(const std::vector<RecordedModule>& modules) {
  std::map<std::string_view, std::size_t> number;
  const auto begins_others = [&](const std::string& path) {
    return std::ranges::any_of(modules, [&](const RecordedModule& other) {
      return other.path.size() > path.size() && other.path.starts_with(path) &&
             other.path[path.size()] == '.';
    });
  };
  const bool is_one_model = !modules.empty() && !begins_others(modules.front().path);
  for (const RecordedModule& module : modules) {
    modules_.push_back({.path = module.path, .is_sequence = module.is_sequence});
  }
  for (std::size_t m = 0; m < modules_.size(); ++m) number.emplace(modules_[m].path, m);
  for (std::size_t m = 0; m < modules_.size(); ++m) {
    std::string_view above = parent_path(modules_[m].path);
    while (!above.empty() && !number.contains(above)) above = parent_path(above);
    if (!above.empty()) {
      modules_[number.at(above)].children.push_back(m);
    } else if (is_one_model && m > 0) {
      modules_.front().children.push_back(m);
    } else {
      roots_.push_back(m);
    }
  }
  // Places of children that have other names are not known.
  for (TreeModule& module : modules_) {
    const bool is_above_all = is_one_model && &module == &modules_.front();
    const std::string_view path = is_above_all ? std::string_view() : module.path;
    for (const std::size_t child : module.children) {
      const std::string_view name = last_part(modules_[child].path);
      constexpr std::size_t most_digits = 9;
      const bool is_number = name.size() <= most_digits &&
                             std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
      if (!is_number || parent_path(modules_[child].path) != path) module.is_sequence = false;
    }
  }
}

void ModuleTree::find_ranges() {
  const StepGraph& graph = *step_.graph;
  std::map<std::string_view, std::size_t> number;
  for (std::size_t m = 0; m < modules_.size(); ++m) number.emplace(modules_[m].path, m);
  std::vector<NodeRange> ranges(modules_.size());
  std::vector<std::int32_t> counts(modules_.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!is_of_forward(graph.nodes[n])) continue;
    for (std::string_view path = graph.layer(graph.nodes[n].op); !path.empty();
         path = parent_path(path)) {
      const auto found = number.find(path);
      if (found == number.end()) continue;
      NodeRange& range = ranges[found->second];
      if (range.first < 0) range.first = static_cast<std::int32_t>(n);
      range.last = static_cast<std::int32_t>(n);
      ++counts[found->second];
    }
  }
  for (std::size_t m = 0; m < modules_.size(); ++m) {
    const NodeRange& range = ranges[m];
    if (counts[m] > 0 && range.last - range.first + 1 == counts[m]) modules_[m].range = range;
  }
  for (const std::size_t root : roots_) modules_[root].range.reset();
}

void ModuleTree::find_saved() {
  const StepGraph& graph = *step_.graph;
  std::vector<std::int32_t> last_of(graph.origins.size(), -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const KernelNode& node = graph.nodes[n];
    if (is_of_forward(node) && node.op.valid()) {
      last_of[node.op.index()] = static_cast<std::int32_t>(n);
    }
  }
  const std::vector<bool> is_kept = kept_by_autograd(graph);
  is_saved_.assign(graph.storages.size(), false);
  std::map<StorageId, std::int32_t> saver;
  for (const SavedTensor& saved : graph.saved) {
    is_saved_[saved.storage.index()] = true;
    const bool persists = graph.storage(saved.storage).persistence == Persistence::persistent;
    const std::int32_t written = last_written_[saved.storage.index()];
    if (saved.call && !persists && saved.op.valid() && last_of[saved.op.index()] >= 0) {
      const NodeId packed = saved.call->packed_after;
      const bool is_later = written >= 0 && (!packed.valid() || NodeId::of(written) > packed);
      if (is_later) saves_written_[static_cast<std::size_t>(last_of[saved.op.index()])] = true;
    }
    if (!is_kept[saved.storage.index()]) continue;
    std::int32_t& last = saver.try_emplace(saved.storage, -1).first->second;
    last = std::max(last, saved.op.valid() ? last_of[saved.op.index()] : nothing_overwritten);
  }
  for (const auto& [storage, last] : saver) {
    by_maker_.push_back({made_[storage.index()], last, step_.bytes(storage)});
    saved_ += step_.bytes(storage);
  }
  std::ranges::stable_sort(by_maker_, {}, &SavedStorage::made);
}

Bytes ModuleTree::inside(const NodeRange& range) const {
  Bytes bytes;
  for (auto at = std::ranges::lower_bound(by_maker_, range.first, {}, &SavedStorage::made);
       at != by_maker_.end() && at->made <= range.last; ++at) {
    if (at->saved <= range.last) bytes += at->bytes;
  }
  return bytes;
}

std::vector<StorageId> ModuleTree::inputs(const NodeRange& range) const {
  std::set<StorageId> found;
  for (std::int32_t n = range.first; n <= range.last; ++n) {
    for (const TensorView& view : step_.graph->nodes[static_cast<std::size_t>(n)].reads) {
      const std::int32_t made = made_[view.storage.index()];
      const bool persists =
          step_.graph->storage(view.storage).persistence == Persistence::persistent;
      if (!persists && made >= 0 && made < range.first && !is_saved_[view.storage.index()]) {
        found.insert(view.storage);
      }
    }
  }
  return {found.begin(), found.end()};
}

bool ModuleTree::can_run_again(const NodeRange& range) const {
  for (std::int32_t n = range.first; n <= range.last; ++n) {
    if (overwritten_[static_cast<std::size_t>(n)] < range.first) return false;
    if (saves_written_[static_cast<std::size_t>(n)]) return false;
    for (const TensorView& view : step_.graph->nodes[static_cast<std::size_t>(n)].reads) {
      const bool persists =
          step_.graph->storage(view.storage).persistence == Persistence::persistent;
      const bool is_given = made_[view.storage.index()] < range.first;
      if (!persists && is_given && last_written_[view.storage.index()] >= range.first) return false;
    }
  }
  return true;
}

double ModuleTree::seconds(const NodeRange& range) const {
  return seconds_before_[static_cast<std::size_t>(range.last) + 1] -
         seconds_before_[static_cast<std::size_t>(range.first)];
}

std::vector<OperatorId> ModuleTree::operators(const NodeRange& range) const {
  std::set<OperatorId> found;
  for (std::int32_t n = range.first; n <= range.last; ++n) {
    const OperatorId op = step_.graph->nodes[static_cast<std::size_t>(n)].op;
    if (op.valid()) found.insert(op);
  }
  return {found.begin(), found.end()};
}

}  // namespace stowage
