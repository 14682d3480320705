#include "planner/pytorch/region_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "planner/pytorch/module_tree.hpp"
#include "planner/pytorch/region_inputs.hpp"

namespace stowage {

namespace {

constexpr std::size_t most_limits = 32;
constexpr std::int64_t limits_apart = 10;   // percent at least
constexpr std::int64_t least_share = 1000;  // of what is saved: smaller regions are none
// Of two choices with peaks so close, in percent, that with fewer regions is taken.
constexpr std::int64_t same_peak = 3;
constexpr std::int64_t least_gain_of_nesting = 10;  // percent of the peak

struct ChosenRegion {
  std::string name;
  std::string sequence;  // whose children it is; "": a module
  NodeRange range;
  Bytes inside;
  std::vector<StorageId> inputs = {};
};

/// Regions of one limit, in the order in which they run.
struct Partition {
  std::vector<ChosenRegion> regions;
  Bytes peak;
};

struct Nesting {
  std::vector<ChosenRegion> outer, inner;
  Bytes peak;
};

class Choice {
 public:
  explicit Choice(const ModuleTree& tree) : tree_(tree) {}

  void run() {
    for (const Bytes limit : limits()) {
      Partition made;
      for (const std::size_t root : tree_.roots()) choose(root, limit, made.regions);
      if (made.regions.empty()) continue;
      made.peak = peak_of(made.regions);
      partitions_.push_back(std::move(made));
    }
  }

  /// The least peak; the highest limit of those that come close.
  [[nodiscard]] const Partition* best() const {
    if (partitions_.empty()) return nullptr;
    const Bytes least = std::ranges::min_element(partitions_, {}, &Partition::peak)->peak;
    const auto close = std::ranges::find_if(partitions_, [&](const Partition& made) {
      return made.peak.count() <= least.count() / 100 * (100 + same_peak);
    });
    return &*(close != partitions_.end() ? close
                                         : std::ranges::find(partitions_, least, &Partition::peak));
  }

  [[nodiscard]] std::optional<Nesting> best_nesting() const {
    std::optional<Nesting> best;
    for (std::size_t outer = 0; outer < partitions_.size(); ++outer) {
      for (std::size_t inner = outer + 1; inner < partitions_.size(); ++inner) {
        Nesting made = nested(partitions_[outer], partitions_[inner]);
        if (!made.inner.empty() && (!best || made.peak < best->peak)) best = std::move(made);
      }
    }
    return best;
  }

 private:
  /// What modules save inside, and parts of all that is saved, from high to low.
  [[nodiscard]] std::vector<Bytes> limits() const {
    std::set<Bytes, std::greater<>> all;
    for (const TreeModule& module : tree_.modules()) {
      if (module.range) all.insert(tree_.inside(*module.range));
    }
    for (const int parts : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
      all.insert(Bytes(tree_.saved().count() / parts));
    }
    std::vector<Bytes> apart;
    for (const Bytes limit : all) {
      if (limit < least() || limit == Bytes() || apart.size() == most_limits) break;
      const bool is_close =
          !apart.empty() && limit.count() > apart.back().count() / 100 * (100 - limits_apart);
      if (!is_close) apart.push_back(limit);
    }
    return apart;
  }

  [[nodiscard]] Bytes least() const { return Bytes(tree_.saved().count() / least_share); }

  void choose(std::size_t at, Bytes limit, std::vector<ChosenRegion>& chosen) const {
    const TreeModule& module = tree_.modules()[at];
    if (module.range && tree_.can_run_again(*module.range)) {
      const Bytes inside = tree_.inside(*module.range);
      if (inside <= limit) return add({module.path, "", *module.range, inside}, chosen);
    }
    if (module.is_sequence) return choose_rows(module, limit, chosen);
    for (const std::size_t child : module.children) choose(child, limit, chosen);
  }

  void add(ChosenRegion region, std::vector<ChosenRegion>& chosen) const {
    if (region.inside < least() || region.inside == Bytes()) return;
    region.inputs = tree_.inputs(region.range);
    chosen.push_back(std::move(region));
  }

  struct Row {
    std::size_t first_child = 0, last_child = 0;
    NodeRange range;
  };

  /// Children of an nn.Sequential, as many in a row as the limit allows. One that overwrites what
  /// the one before it made goes with that one.
  void choose_rows(const TreeModule& module, Bytes limit, std::vector<ChosenRegion>& chosen) const {
    std::optional<Row> row;
    for (const std::size_t child : module.children) {
      const std::optional<NodeRange>& range = tree_.modules()[child].range;
      if (!range) {
        if (row) end_row(module, *row, chosen);
        row.reset();
        choose(child, limit, chosen);
        continue;
      }
      if (row && row->range.last + 1 == range->first) {
        const NodeRange both{row->range.first, range->last};
        if (tree_.inside(both) <= limit || !tree_.can_run_again(*range)) {
          *row = {row->first_child, child, both};
          continue;
        }
      }
      if (row) end_row(module, *row, chosen);
      row.reset();
      if (tree_.inside(*range) > limit || !tree_.can_run_again(*range)) {
        choose(child, limit, chosen);
      } else {
        row = Row{child, child, *range};
      }
    }
    if (row) end_row(module, *row, chosen);
  }

  void end_row(const TreeModule& module, const Row& row, std::vector<ChosenRegion>& chosen) const {
    if (!tree_.can_run_again(row.range)) return;
    const std::string& first = tree_.modules()[row.first_child].path;
    const std::string& last = tree_.modules()[row.last_child].path;
    const auto place = [&](const std::string& path) {
      return std::stoll(path.substr(path.rfind('.') + 1));
    };
    const bool is_one = row.first_child == row.last_child;
    add({is_one ? first : fmt::format("{}[{}:{}]", module.path, place(first), place(last) + 1),
         is_one ? "" : module.path, row.range, tree_.inside(row.range)},
        chosen);
  }

  /// What these regions are given and nothing saves.
  [[nodiscard]] Bytes inputs_of(const std::vector<const ChosenRegion*>& regions) const {
    std::set<StorageId> all;
    for (const ChosenRegion* const region : regions) {
      all.insert(region->inputs.begin(), region->inputs.end());
    }
    Bytes bytes;
    for (const StorageId id : all) bytes += tree_.bytes(id);
    return bytes;
  }

  /// What is kept while regions lie outside of their second runs, of `saved` without them.
  [[nodiscard]] Bytes kept(Bytes saved, const std::vector<const ChosenRegion*>& regions) const {
    Bytes bytes = saved + inputs_of(regions);
    for (const ChosenRegion* const region : regions) bytes -= region->inside;
    return bytes;
  }

  [[nodiscard]] static std::vector<const ChosenRegion*> pointers(
      const std::vector<ChosenRegion>& regions) {
    std::vector<const ChosenRegion*> all;
    all.reserve(regions.size());
    for (const ChosenRegion& region : regions) all.push_back(&region);
    return all;
  }

  [[nodiscard]] static Bytes largest_inside(const std::vector<const ChosenRegion*>& regions) {
    Bytes largest;
    for (const ChosenRegion* const region : regions) largest = std::max(largest, region->inside);
    return largest;
  }

  [[nodiscard]] Bytes peak_of(const std::vector<ChosenRegion>& regions) const {
    const auto all = pointers(regions);
    return kept(tree_.saved(), all) + largest_inside(all);
  }

  [[nodiscard]] Nesting nested(const Partition& outer, const Partition& inner) const {
    Nesting made{.outer = outer.regions, .inner = {}, .peak = {}};
    Bytes largest;
    for (const ChosenRegion& region : outer.regions) {
      std::vector<const ChosenRegion*> within;
      auto candidate =
          std::ranges::lower_bound(inner.regions, region.range.first, {},
                                   [](const ChosenRegion& other) { return other.range.first; });
      for (; candidate != inner.regions.end() && candidate->range.last <= region.range.last;
           ++candidate) {
        const bool is_row_of_row =
            !candidate->sequence.empty() && candidate->sequence == region.sequence;
        if (!is_row_of_row && !(candidate->range == region.range)) within.push_back(&*candidate);
      }
      if (within.size() < 2) within.clear();
      largest = std::max(largest, kept(region.inside, within) + largest_inside(within));
      for (const ChosenRegion* const one : within) made.inner.push_back(*one);
    }
    made.peak = kept(tree_.saved(), pointers(outer.regions)) + largest;
    return made;
  }

  const ModuleTree& tree_;
  std::vector<Partition> partitions_;  // from high limits to low ones
};

ModuleRegion region_of(const ModuleTree& tree, const ChosenRegion& chosen, bool is_inner) {
  return {.module = chosen.name,
          .region = {.operators = tree.operators(chosen.range)},
          .saved = chosen.inside,
          .seconds = tree.seconds(chosen.range),
          .is_inner = is_inner};
}

}  // namespace

RegionChoice choose_regions(const SizedStep& step, const Rates& rates,
                            const std::vector<RecordedModule>& modules) {
  RegionChoice choice;
  if (modules.empty()) {
    choice.regions = module_regions(step, rates);
    set_region_inputs(*step.graph, modules, choice.regions);
    return choice;
  }
  const ModuleTree tree(step, rates, modules);
  Choice chosen(tree);
  chosen.run();
  const Partition* const best = chosen.best();
  if (best == nullptr) return choice;
  for (const ChosenRegion& one : best->regions)
    choice.regions.push_back(region_of(tree, one, false));
  set_region_inputs(*step.graph, modules, choice.regions);
  const auto nesting = chosen.best_nesting();
  const Bytes most(best->peak.count() / 100 * (100 - least_gain_of_nesting));
  if (!nesting || nesting->peak > most) return choice;
  for (const ChosenRegion& one : nesting->outer)
    choice.nested.push_back(region_of(tree, one, false));
  for (const ChosenRegion& one : nesting->inner)
    choice.nested.push_back(region_of(tree, one, true));
  set_region_inputs(*step.graph, modules, choice.nested);
  return choice;
}

}  // namespace stowage
