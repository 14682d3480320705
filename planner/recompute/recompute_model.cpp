#include "planner/recompute/recompute_model.hpp"

#include <algorithm>

#include "planner/recompute/pinned_lives.hpp"

namespace stowage {

namespace {

std::int64_t least_scratch(const Operation& operation) {
  const auto least = std::ranges::min_element(operation.engines, {}, &EngineCost::workspace);
  return (least->workspace + operation.temporaries).count();
}

void insert_sorted(std::vector<std::int32_t>& numbers, std::int32_t number) {
  const auto place = std::ranges::lower_bound(numbers, number);
  if (place == numbers.end() || *place != number) numbers.insert(place, number);
}

}  // namespace

RecomputeModel::RecomputeModel(const SizedStep& step, const Rates& rates, const StepPins& pins)
    : graph_(step.graph),
      groups_(useful_rerun_groups(rerun_groups(*step.graph), *step.graph, pins)) {
  const ResidencyProblem problem = make_problem(step, rates, {.all_on_gpu = true, .pins = &pins});
  for (const Operation& operation : problem.operations) {
    scratch_.push_back(operation.pin == Pin::cpu ? 0 : least_scratch(operation));
  }
  const std::size_t count = groups_.groups.size();
  for (const RerunGroup& group : groups_.groups) {
    double seconds = 0;
    for (const SecondRun& run : group.runs) {
      const NodeId node = run.node;
      const KernelNode& first = graph_->node(node);
      const KernelNode again = node_of(*graph_, run);
      seconds += again.kernel == first.kernel
                     ? problem.operations[node.index()].engines.front().seconds
                     : gpu_seconds(rates, step, again);
    }
    group_seconds_.push_back(seconds);
  }
  saved_.resize(count);
  inputs_.resize(count);
  items_of_.resize(count);
  add_items(problem, pins);
  add_renewals();
  has_run_.resize(count);
  place_.resize(problem.operations.size());
  places_.resize(items_.size());
}

// 1. Notes the group of each node and the storages that its second run reads.
// 2. For each storage takes its life on the GPU. A storage that wraps, or that no choice changes,
//    only adds to the constant memory.
// 3. For the others notes the second runs that read and write it, the backward nodes that need its
//    group, and which groups read which.
void RecomputeModel::add_items(const ResidencyProblem& problem, const StepPins& pins) {
  const std::size_t nodes = graph_->nodes.size();
  enter_.resize(nodes);
  leave_.resize(nodes);
  reads_.resize(nodes);
  writes_.resize(nodes);
  wants_.resize(nodes);
  wanted_items_.resize(nodes);
  std::vector<std::int32_t> group_of_node(nodes, -1);
  std::vector<std::vector<StorageId>> read_again(nodes);
  for (std::size_t g = 0; g < groups_.groups.size(); ++g) {
    for (const NodeId node : groups_.groups[g].nodes) {
      group_of_node[node.index()] = static_cast<std::int32_t>(g);
      for (const TensorView& view : node_of(*graph_, {node, {}}).reads) {
        read_again[node.index()].push_back(view.storage);
      }
    }
  }
  const auto is_read_again = [&](std::size_t node, StorageId storage) {
    return std::ranges::find(read_again[node], storage) != read_again[node].end();
  };
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const Item& of = problem.items[i];
    const bool lives_on_cpu = pins.of(problem.storage_of[i]) == Pin::cpu;
    const std::vector<StepRange> lives =
        lives_on_cpu ? std::vector<StepRange>{} : live_ranges_on_gpu(problem, of);
    for (const Touch& touch : of.touches) {
      const auto node = static_cast<std::size_t>(touch.step);
      if (lives_on_cpu && problem.operations[node].pin != Pin::cpu) {
        scratch_[node] += of.bytes.count();
      }
    }
    if (of.wraps) {
      add_lives(lives, of.bytes);
      continue;
    }
    const std::int32_t group = groups_.group_of[problem.storage_of[i].index()];
    ChangingItem item{.bytes = lives.empty() ? 0 : of.bytes.count(),
                      .group = group,
                      .first = lives.empty() ? of.touches.front().step : lives.front().begin,
                      .last = lives.empty() ? of.touches.back().step : lives.back().end - 1};
    item.last_forward = item.first;
    const auto number = static_cast<std::int32_t>(items_.size());
    bool changes = group >= 0, is_saved = false;
    for (const Touch& touch : of.touches) {
      const auto node = static_cast<std::size_t>(touch.step);
      const bool on_cpu = problem.operations[node].pin == Pin::cpu;
      const std::int32_t reader = group_of_node[node];
      if (reader >= 0 && reader != group && is_read_again(node, problem.storage_of[i])) {
        changes = true;
        reads_[node].push_back(number);
        if (group >= 0) insert_sorted(inputs_[static_cast<std::size_t>(reader)], group);
      }
      if (reader >= 0 && reader == group) writes_[node].push_back(number);
      if (graph_->nodes[node].phase != Phase::backward) {
        if (!on_cpu) item.last_forward = touch.step;
      } else if (group >= 0) {
        insert_sorted(wants_[node], group);
        if (on_cpu) continue;  // what is made again goes down to it at once
        wanted_items_[node].push_back(number);
        is_saved = true;
      }
    }
    if (is_saved) saved_[static_cast<std::size_t>(group)] += of.bytes;
    if (changes) {
      items_.push_back(item);
      if (group >= 0) items_of_[static_cast<std::size_t>(group)].push_back(number);
    } else {
      add_lives(lives, of.bytes);
    }
  }
}

void RecomputeModel::add_lives(const std::vector<StepRange>& lives, Bytes bytes) {
  for (const StepRange& life : lives) {
    enter_[static_cast<std::size_t>(life.begin)] += bytes.count();
    leave_[static_cast<std::size_t>(life.end) - 1] += bytes.count();
  }
}

void RecomputeModel::add_renewals() {
  for (std::size_t n = 0; n < wants_.size(); ++n) {
    for (const std::int32_t group : wants_[n]) renewals_.push_back({group, NodeId::of(n)});
  }
  std::ranges::stable_sort(renewals_, {}, &Renewal::group);
  renewals_at_.resize(wants_.size());
  for (std::size_t i = 0; i < renewals_.size(); ++i) {
    renewals_at_[renewals_[i].before.index()].push_back(static_cast<std::int32_t>(i));
  }
}

void RecomputeModel::note_live(std::int32_t first, std::int32_t last, std::int64_t bytes) {
  const auto end = static_cast<std::size_t>(last) + 1;
  if (change_.size() <= end) change_.resize(end + 1, 0);
  change_[static_cast<std::size_t>(first)] += bytes;
  change_[end] -= bytes;
}

void RecomputeModel::end_copies(std::size_t group) {
  has_run_[group] = false;
  for (const std::int32_t item : items_of_[group]) {
    Places& of = places_[static_cast<std::size_t>(item)];
    note_live(of.copy_first, of.copy_last, items_[static_cast<std::size_t>(item)].bytes);
    of.copy_first = -1;
  }
}

void RecomputeModel::run_again(std::int32_t node) {
  const auto place = static_cast<std::int32_t>(sequence_.size());
  sequence_.push_back(-1 - node);
  for (const std::int32_t read : reads_[static_cast<std::size_t>(node)]) {
    Places& of = places_[static_cast<std::size_t>(read)];
    const std::int32_t group = items_[static_cast<std::size_t>(read)].group;
    const bool copied = group >= 0 && has_run_[static_cast<std::size_t>(group)];
    (copied ? of.copy_last : of.last_read) = place;
  }
  for (const std::int32_t written : writes_[static_cast<std::size_t>(node)]) {
    Places& of = places_[static_cast<std::size_t>(written)];
    if (of.copy_first < 0) of.copy_first = place;
    of.copy_last = place;
    of.is_copied = true;
  }
}

void RecomputeModel::note_lifetimes() {
  change_.resize(std::max(change_.size(), sequence_.size() + 1), 0);
  const auto place = [&](std::int32_t node) { return place_[static_cast<std::size_t>(node)]; };
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const ChangingItem& item = items_[i];
    const Places& of = places_[i];
    if (of.copy_first >= 0) note_live(of.copy_first, of.copy_last, item.bytes);
    const std::int32_t last =
        of.is_copied ? place(item.last_forward) : std::max(place(item.last), of.last_read);
    note_live(place(item.first), last, item.bytes);
  }
}

// 1. Walks the step. Before a backward node it drops groups that are renewed there and runs the
// groups
//    again that the node needs, with those that they read; this gives the order of all runs.
// 2. Turns the places of first and last uses in that order into changes of live memory.
// 3. Sums the live memory over that order, for the peak and the excess.
RecomputeOutcome RecomputeModel::outcome(const RecomputeChoice& choice, Bytes limit) {
  RecomputeOutcome result;
  std::fill(has_run_.begin(), has_run_.end(), false);
  std::fill(places_.begin(), places_.end(), Places{});
  change_.assign(place_.size() + 1, 0);
  sequence_.clear();
  const auto want = [&](std::int32_t group) {
    const auto at = static_cast<std::size_t>(group);
    if (!choice[at] || has_run_[at]) return;
    has_run_[at] = true;
    batch_.push_back(group);
  };
  for (std::size_t n = 0; n < place_.size(); ++n) {
    for (const std::int32_t renewal : renewals_at_[n]) {
      const auto at = static_cast<std::size_t>(renewal);
      const auto group = static_cast<std::size_t>(renewals_[at].group);
      if (choice[groups().size() + at] && has_run_[group]) end_copies(group);
    }
    batch_.clear();
    for (const std::int32_t group : wants_[n]) want(group);
    if (!batch_.empty()) {
      batch_nodes_.clear();
      for (std::size_t next = 0; next < batch_.size(); ++next) {
        const auto group = static_cast<std::size_t>(batch_[next]);
        const RerunGroup& rerun = groups_.groups[group];
        if (rerun.until.valid() && rerun.until.index() < n) result.valid = false;
        result.extra_seconds += group_seconds_[group];
        for (const SecondRun& run : rerun.runs) batch_nodes_.push_back(run.node.value);
        for (const std::int32_t input : inputs_[group]) want(input);
      }
      std::ranges::sort(batch_nodes_);
      for (const std::int32_t node : batch_nodes_) run_again(node);
    }
    place_[n] = static_cast<std::int32_t>(sequence_.size());
    sequence_.push_back(static_cast<std::int32_t>(n));
    for (const std::int32_t item : wanted_items_[n]) {
      places_[static_cast<std::size_t>(item)].copy_last = place_[n];
    }
  }
  note_lifetimes();
  std::int64_t fixed = 0, live = 0, peak = 0;
  for (std::size_t place = 0; place < sequence_.size(); ++place) {
    live += change_[place];
    const std::int32_t node = sequence_[place];
    const bool again = node < 0;
    const auto at = static_cast<std::size_t>(again ? -1 - node : node);
    if (!again) fixed += enter_[at];
    const std::int64_t here = fixed + live + scratch_[at];
    if (!again) fixed -= leave_[at];
    peak = std::max(peak, here);
    if (here > limit.count()) result.excess += static_cast<double>(here - limit.count());
  }
  result.peak = Bytes(peak);
  return result;
}

std::vector<RecomputedValue> RecomputeModel::values(const RecomputeChoice& choice) const {
  std::vector<RecomputedValue> values;
  const auto value_of = [&](std::int32_t group) {
    const RerunGroup& of = groups_.groups[static_cast<std::size_t>(group)];
    return graph_->storage(of.makes.front()).name;
  };
  const std::size_t count = groups().size();
  const std::vector<bool> chosen(choice.begin(),
                                 choice.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<Renewal> renewals;
  for (std::size_t i = 0; i < renewals_.size(); ++i) {
    if (choice[count + i]) renewals.push_back(renewals_[i]);
  }
  for (const Rerun& rerun : rerun_schedule(*graph_, groups_, chosen, renewals)) {
    if (groups_.groups[static_cast<std::size_t>(rerun.group)].makes.empty()) continue;
    values.push_back({value_of(rerun.group), {}});
    if (rerun.renews) values.back().before = graph_->node(rerun.before).name;
  }
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace stowage
