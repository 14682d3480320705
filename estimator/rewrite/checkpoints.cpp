#include "estimator/rewrite/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "estimator/base/kernel_set.hpp"
#include "estimator/rewrite/kept_results.hpp"
#include "estimator/rewrite/node_insertion.hpp"
#include "estimator/rewrite/renumber.hpp"
#include "estimator/step/saved_storages.hpp"
#include "estimator/step/unique_names.hpp"
#include "estimator/step/written_first.hpp"

namespace stowage {

namespace {

/// A region's nodes and storages, with the ids of the original step.
struct Region {
  OperatorId first_saver, last_saver;  // of those that save something for backward
  std::vector<std::size_t> again;      // the nodes that run again, in their order
  std::vector<StorageId> entering;     // what those read that is made elsewhere
  std::set<StorageId> made, entered;   // by its nodes; the same as `entering`
  std::set<StorageId> converted;       // weights that are converted for it
  std::set<OperatorId> kept;           // operators whose results are kept
  std::vector<SavedCall> inputs;       // calls of hooks for what enters
  /// Their results, each with the number of nodes of `again` that run before it is made.
  std::vector<std::pair<StorageId, std::size_t>> kept_results;
  std::map<StorageId, StorageId> copy;  // by a storage of the forward pass: that of the second run
  std::optional<std::size_t> before;    // the backward node before which they run
  NodeId begins;                        // the second run's first node, in the new step
  std::size_t end = 0;                  // one past its last node of the forward pass
};

class Checkpointing {
 public:
  Checkpointing(StepGraph step, const std::vector<CheckpointRegion>& regions);
  StepGraph run() &&;

 private:
  [[nodiscard]] bool is_persistent(StorageId id) const {
    return step_.storage(id).persistence == Persistence::persistent;
  }
  [[nodiscard]] bool saves(OperatorId op, StorageId id) const { return saved_.contains({op, id}); }
  /// Null: the operator is in none, or its region saves nothing.
  [[nodiscard]] Region* region_of(OperatorId op) {
    const int at = op.valid() ? region_of_[op.index()] : -1;
    if (at < 0) return nullptr;
    Region& region = regions_[static_cast<std::size_t>(at)];
    return region.first_saver.valid() ? &region : nullptr;
  }
  [[nodiscard]] bool is_of(const Region& region, OperatorId op) const {
    const int at = op.valid() ? region_of_[op.index()] : -1;
    return at >= 0 && &regions_[static_cast<std::size_t>(at)] == &region;
  }
  void find_savers();
  void find_what_runs_again();
  void find_first_backward();
  void stop_at_last_saved(Region& region) const;
  void make_copies(Region& region);
  [[nodiscard]] KernelNode run_again(const Region& region, std::size_t node) const;
  [[nodiscard]] std::vector<KernelNode> second_run(const Region& region) const;
  void hold_what_would_follow(const Region& region, KernelNode& last) const;
  void read_copies();
  void let_go_of_copies(KernelNode& node, const Region& region) const;
  void hold_what_enters();
  void find_what_script_keeps();
  void hold_what_script_keeps();
  void forget_saved();
  void save_input(const Region& region, StorageId entering);
  void set_unpacking();
  void find_dead_ends();
  void put_together();
  void let_dead_ends_go();

  StepGraph step_;
  bool frees_by_reference_;
  std::vector<Region> regions_;
  std::vector<int> region_of_;  // by OperatorId; -1: none
  std::set<std::pair<OperatorId, StorageId>> saved_;
  std::set<std::pair<NodeId, StorageId>> kept_by_script_;  // what regions save, until that node
  std::set<StorageId> dead_;     // what regions save whose gradient nobody asks for
  std::vector<Storage> copies_;  // to follow the step's; no variable of the script has them
  std::string ending_;           // of the names of nodes and storages of second runs
};

Checkpointing::Checkpointing(StepGraph step, const std::vector<CheckpointRegion>& regions)
    : step_(std::move(step)),
      frees_by_reference_(traits(step_.settings.kernels).frees_by_reference),
      regions_(regions.size()),
      region_of_(step_.origins.size(), -1),
      ending_(std::ranges::any_of(step_.nodes, is_second_run) ? ".nested.recomputed"
                                                              : ".recomputed") {
  for (std::size_t i = 0; i < regions.size(); ++i) {
    for (const OperatorId op : regions[i].operators) region_of_[op.index()] = static_cast<int>(i);
    regions_[i].kept.insert(regions[i].kept.begin(), regions[i].kept.end());
    regions_[i].inputs = regions[i].inputs;
  }
}

void Checkpointing::find_savers() {
  for (const SavedTensor& saved : step_.saved) {
    saved_.emplace(saved.op, saved.storage);
    const int at = saved.op.valid() ? region_of_[saved.op.index()] : -1;
    if (at < 0) continue;
    Region& region = regions_[static_cast<std::size_t>(at)];
    if (!region.first_saver.valid() || saved.op < region.first_saver) region.first_saver = saved.op;
    if (!region.last_saver.valid() || region.last_saver < saved.op) region.last_saver = saved.op;
  }
}

// Weights that autocast converted are converted again, for their first reader. Inputs of the region
// that are read only by nodes that do not run again count too, since PyTorch keeps a region's
// arguments.
void Checkpointing::find_what_runs_again() {
  std::map<StorageId, std::size_t> conversions;  // of weights, by the converted copy
  for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
    const KernelNode& node = step_.nodes[n];
    if (!runs_forward(node)) continue;
    if (node.kernel == Kernel::cast &&
        step_.storage(node.writes.front().storage).storage_class == StorageClass::parameter_copy) {
      conversions[node.writes.front().storage] = n;
    }
    Region* const region = region_of(node.op);
    if (region == nullptr) continue;
    region->end = n + 1;
    const bool again = node.op <= region->last_saver;
    for (const TensorView& read : node.reads) {
      const StorageId id = read.storage;
      if (region->made.contains(id)) continue;
      if (const auto found = conversions.find(id); again && found != conversions.end()) {
        if (region->converted.insert(id).second) region->again.push_back(found->second);
      }
      const bool is_weight = step_.storage(id).parameter.valid() || is_persistent(id);
      if (!is_weight && region->entered.insert(id).second) region->entering.push_back(id);
    }
    const bool kept = region->kept.contains(node.op);
    if (again && !kept) region->again.push_back(n);
    for (const TensorView& written : node.writes) {
      const bool fresh = region->made.insert(written.storage).second;
      if (kept && fresh && !is_persistent(written.storage)) {
        region->kept_results.emplace_back(written.storage, region->again.size());
      }
    }
  }
}

void Checkpointing::stop_at_last_saved(Region& region) const {
  while (!region.again.empty()) {
    const KernelNode& last = step_.nodes[region.again.back()];
    if (last.op != region.last_saver || last.kernel == Kernel::cast) return;
    const bool makes_saved = std::any_of(
        last.writes.begin(), last.writes.end(),
        [&](const TensorView& written) { return saves(region.last_saver, written.storage); });
    if (makes_saved) return;
    region.again.pop_back();
  }
}

// Backward reaches the last region of the forward pass first.
void Checkpointing::find_first_backward() {
  std::vector<Region*> waiting;
  for (Region& region : regions_) {
    if (region.last_saver.valid()) waiting.push_back(&region);
  }
  std::sort(waiting.begin(), waiting.end(),
            [](const Region* a, const Region* b) { return a->last_saver < b->last_saver; });
  for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
    const KernelNode& node = step_.nodes[n];
    if (node.phase != Phase::backward || !node.op.valid()) continue;
    while (!waiting.empty() && node.op <= waiting.back()->last_saver) {
      waiting.back()->before = n;
      waiting.pop_back();
    }
  }
}

void Checkpointing::make_copies(Region& region) {
  const auto copy = [&](StorageId id) {
    if (is_persistent(id) || region.entered.contains(id) || region.copy.contains(id)) return;
    Storage storage = step_.storage(id);
    storage.name = unnumbered(storage.name) + ending_;
    region.copy[id] = StorageId::of(step_.storages.size() + copies_.size());
    copies_.push_back(std::move(storage));
  };
  for (const std::size_t n : region.again) {
    const KernelNode& node = step_.nodes[n];
    for (const TensorView& written : node.writes) copy(written.storage);
    for (const StorageId temporary : node.temporaries) copy(temporary);
  }
}

void replace(StorageId& id, const std::map<StorageId, StorageId>& copy) {
  if (const auto found = copy.find(id); found != copy.end()) id = found->second;
}

void replace(KernelNode& node, const std::map<StorageId, StorageId>& copy) {
  for (TensorView& view : node.reads) replace(view.storage, copy);
  for (TensorView& view : node.writes) replace(view.storage, copy);
  for (StorageId& id : node.temporaries) replace(id, copy);
  for (StorageId& id : node.holds) replace(id, copy);
}

KernelNode Checkpointing::run_again(const Region& region, std::size_t n) const {
  KernelNode node = step_.nodes[n];
  node.name = unnumbered(node.name) + ending_;
  node.phase = Phase::backward;
  if (node.kernel == Kernel::batch_norm_forward || node.kernel == Kernel::batch_norm_inference) {
    node.attributes.set("momentum", 0.0);
  }
  replace(node, region.copy);
  return node;
}

// In the first run the caller of an operator holds the arguments that autocast converted; the cache
// of converted weights is released when the whole region has run.
std::vector<KernelNode> Checkpointing::second_run(const Region& region) const {
  std::vector<KernelNode> nodes;
  nodes.reserve(region.again.size());
  std::set<StorageId> converted;
  std::vector<StorageId> cache;
  OperatorId op;
  for (const std::size_t n : region.again) {
    const KernelNode& source = step_.nodes[n];
    KernelNode node = run_again(region, n);
    if (source.op != op) converted.clear();
    op = source.op;
    if (source.kernel == Kernel::cast) converted.insert(source.reads.front().storage);
    std::erase_if(node.holds, [&](StorageId id) {
      return source.kernel != Kernel::cast && converted.contains(id);
    });
    if (source.kernel == Kernel::cast) {
      const Storage& made = step_.storage(source.writes.front().storage);
      const bool cached = made.storage_class == StorageClass::parameter_copy &&
                          step_.gradients[made.parameter.index()].storage.valid();
      if (cached) cache.push_back(node.writes.front().storage);
    }
    nodes.push_back(std::move(node));
  }
  for (const auto& [result, before] : region.kept_results) {
    if (frees_by_reference_ && before < nodes.size()) nodes[before].holds.push_back(result);
  }
  if (frees_by_reference_ && !nodes.empty() && !cache.empty()) {
    std::vector<StorageId>& holds = nodes.back().holds;
    holds.insert(holds.end(), cache.begin(), cache.end());
    std::sort(holds.begin(), holds.end());
  }
  if (frees_by_reference_ && !nodes.empty()) hold_what_would_follow(region, nodes.back());
  return nodes;
}

// When the second run stops, the tensors that the rest of the region would read, or that variables
// of its functions hold, are still alive.
void Checkpointing::hold_what_would_follow(const Region& region, KernelNode& last) const {
  std::set<StorageId> there(last.holds.begin(), last.holds.end());
  const auto hold = [&](StorageId id) {
    if (const auto found = region.copy.find(id); found != region.copy.end()) {
      there.insert(found->second);
    }
  };
  for (std::size_t n = *std::ranges::max_element(region.again) + 1; n < region.end; ++n) {
    const KernelNode& node = step_.nodes[n];
    if (!runs_forward(node) || !is_of(region, node.op)) continue;
    if (region.kept.contains(node.op)) continue;
    for (const TensorView& read : node.reads) hold(read.storage);
    for (const StorageId id : node.holds) hold(id);
  }
  last.holds.assign(there.begin(), there.end());
}

// The gradient of a linear layer's bias is summed over the rows by autograd's engine, behind the
// layer's own node (torch/csrc/autograd/engine.cpp, validate_outputs). The recomputed tensors that
// were passed to that node have been released by then. A convolution sums its bias's gradient
// within its node.
bool is_sum_behind_its_call(const KernelNode& node) {
  return node.kernel == Kernel::channel_sum && node.attributes.has("axis");
}

void Checkpointing::let_go_of_copies(KernelNode& node, const Region& region) const {
  if (!frees_by_reference_) return;
  std::erase_if(node.holds, [&](StorageId id) {
    return std::ranges::any_of(region.copy, [&](const auto& copy) { return copy.second == id; });
  });
}

void Checkpointing::read_copies() {
  for (KernelNode& node : step_.nodes) {
    if (node.phase != Phase::backward) continue;
    const Region* const region = region_of(node.op);
    if (region == nullptr) continue;
    replace(node, region->copy);
    if (is_sum_behind_its_call(node)) let_go_of_copies(node, *region);
  }
}

// The autograd node of the first operator that saves something releases the region's inputs when it
// is done, together with its own saved tensors. Precondition: backward's reads are not changed yet.
void Checkpointing::hold_what_enters() {
  if (!frees_by_reference_) return;
  struct Last {
    KernelNode* node = nullptr;
    bool holds_saved = false;
  };
  std::vector<Last> last(regions_.size());
  for (KernelNode& node : step_.nodes) {
    const Region* const region = region_of(node.op);
    if (node.phase != Phase::backward || region == nullptr || node.op != region->first_saver) {
      continue;
    }
    Last& found = last[static_cast<std::size_t>(region - regions_.data())];
    const bool holds = std::any_of(node.holds.begin(), node.holds.end(),
                                   [&](StorageId id) { return saves(region->first_saver, id); });
    if (!found.holds_saved || holds) found = {&node, holds};
  }
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    if (last[i].node == nullptr || !regions_[i].before) continue;
    std::vector<StorageId>& holds = last[i].node->holds;
    holds.insert(holds.end(), regions_[i].entering.begin(), regions_[i].entering.end());
    for (const auto& [result, before] : regions_[i].kept_results) {
      if (before >= regions_[i].again.size()) holds.push_back(result);
    }
  }
}

void Checkpointing::save_input(const Region& region, StorageId entering) {
  SavedTensor saved{region.first_saver, entering, std::string(region_input_role)};
  const std::size_t before = step_.saved.size();
  for (const SavedCall& call : region.inputs) {
    if (call.view.storage != entering) continue;
    saved.call = call;
    step_.saved.push_back(saved);
  }
  if (step_.saved.size() == before) step_.saved.push_back(std::move(saved));
}

/// Backward asks for a region's inputs before the second run.
void Checkpointing::set_unpacking() {
  std::map<OperatorId, NodeId> begins;  // by the region's first saver
  for (const Region& region : regions_) {
    if (region.before) begins[region.first_saver] = region.begins;
  }
  for (SavedTensor& saved : step_.saved) {
    if (!saved.call || saved.role != region_input_role) continue;
    const auto found = begins.find(saved.op);
    if (found != begins.end()) saved.call->unpacked_before = found->second;
  }
}

// A script may hold what a region saves until backward has begun: a cache of keys and values in the
// model's output. Precondition: the list of saved tensors is not changed yet.
void Checkpointing::find_what_script_keeps() {
  if (!frees_by_reference_) return;
  for (const SavedTensor& saved : step_.saved) {
    const Region* const region = region_of(saved.op);
    if (region == nullptr || !region->before || !saved.call || is_persistent(saved.storage))
      continue;
    const NodeId until = saved.call->held_until;
    if (until.valid() && !runs_forward(step_.node(until)))
      kept_by_script_.emplace(until, saved.storage);
  }
}

// What is held until an update is held to the step's end: the node of the update may leave the step
// (with_updates). Precondition: backward's reads are those of the copies.
void Checkpointing::hold_what_script_keeps() {
  for (const auto& [until, storage] : kept_by_script_) {
    KernelNode& node = step_.nodes[until.index()];
    if (node.phase == Phase::update) {
      step_.script_holds.update(storage, [](ScriptHold& hold) { hold.held_to_end = true; });
      continue;
    }
    std::vector<StorageId>& holds = node.holds;
    if (std::ranges::find(holds, storage) == holds.end()) holds.push_back(storage);
  }
}

void Checkpointing::forget_saved() {
  std::erase_if(step_.saved, [&](const SavedTensor& saved) {
    const Region* const region = region_of(saved.op);
    return region != nullptr && region->before.has_value();
  });
  for (const Region& region : regions_) {
    if (!region.before) continue;
    for (const StorageId entering : region.entering) save_input(region, entering);
    for (const auto& [result, before] : region.kept_results) {
      step_.saved.push_back({region.first_saver, result, std::string(kept_result_role)});
    }
  }
}

void number(const std::vector<std::string*>& names) {
  std::vector<std::size_t> hashes;
  hashes.reserve(names.size());
  for (const std::string* name : names) hashes.push_back(name_hash(*name));
  number_repeated(names, hashes);
}

void Checkpointing::put_together() {
  std::vector<std::string*> node_names, storage_names;
  std::size_t more = 0;
  for (const Region& region : regions_) {
    if (region.before) more += region.again.size();
  }
  NodeInsertion nodes(step_.nodes.size(), more);
  std::multimap<std::size_t, Region*> before;
  for (Region& region : regions_) {
    if (region.before) before.emplace(*region.before, &region);
  }
  auto next = before.begin();
  std::size_t made = 0;
  for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
    for (; next != before.end() && next->first == n; ++next) {
      next->second->begins = NodeId::of(n + made);
      for (KernelNode& node : second_run(*next->second)) {
        node_names.push_back(&nodes.insert(std::move(node)).name);
        ++made;
      }
    }
    nodes.keep(step_.nodes[n]);
  }
  number(node_names);
  for (Storage& copy : copies_) storage_names.push_back(&copy.name);
  number(storage_names);
  step_.storages.insert(step_.storages.end(), copies_.begin(), copies_.end());
  std::move(nodes).put_into(step_);
  set_unpacking();
  renumber_convolutions(step_);
}

void Checkpointing::find_dead_ends() {
  if (!frees_by_reference_) return;
  std::set<OperatorId> live;
  for (const KernelNode& node : step_.nodes) {
    if (node.phase == Phase::backward) live.insert(node.op);
  }
  std::set<StorageId> wanted;
  for (const auto& [op, storage] : saved_) {
    if (region_of(op) == nullptr || !region_of(op)->before) continue;
    (live.contains(op) ? wanted : dead_).insert(storage);
  }
  for (const StorageId storage : wanted) dead_.erase(storage);
}

// The autograd graph of a dead end holds no tensors during the first run of a region, since the
// hooks have packed them. Of the nodes that hold such a tensor the graph's is the last.
void Checkpointing::let_dead_ends_go() {
  for (std::size_t n = step_.nodes.size(); n-- > 0 && !dead_.empty();) {
    KernelNode& node = step_.nodes[n];
    if (!runs_forward(node) || region_of(node.op) == nullptr) continue;
    std::erase_if(node.holds, [&](StorageId id) { return dead_.erase(id) > 0; });
  }
}

StepGraph Checkpointing::run() && {
  find_savers();
  find_what_runs_again();
  find_first_backward();
  for (Region& region : regions_) {
    if (!region.before) continue;
    stop_at_last_saved(region);
    make_copies(region);
  }
  find_dead_ends();
  hold_what_enters();
  find_what_script_keeps();
  forget_saved();
  read_copies();
  hold_what_script_keeps();
  put_together();
  let_dead_ends_go();
  into_micro_batch(step_, step_.storages.size() - copies_.size());
  return std::move(step_);
}

}  // namespace

Result<StepGraph> with_checkpoints(StepGraph step, const std::vector<CheckpointRegion>& regions) {
  if (regions.empty()) return step;
  if (step.settings.micro_batches != 1) {
    return failure(
        fmt::format("the step of '{}' has {} micro-batches; checkpoints come before them",
                    step.model, step.settings.micro_batches));
  }
  std::set<OperatorId> known;
  for (const CheckpointRegion& region : regions) {
    for (const OperatorId op : region.operators) {
      if (!op.valid() || op.index() >= step.origins.size()) {
        return failure(fmt::format("a checkpointed operator is none of '{}'", step.model));
      }
      if (!known.insert(op).second) {
        return failure(fmt::format("'{}' is in two checkpointed regions", step.layer(op)));
      }
    }
  }
  if (step.settings.mode != Mode::train) return step;
  if (auto mistake = overwritten_result(step, regions)) return failure(*std::move(mistake));
  StepGraph rewritten = Checkpointing(std::move(step), regions).run();
  // What saves a tensor decides what runs again. In a step that names another operator than the one
  // that did, the second run stops too early.
  if (auto mistake = read_before_written(rewritten)) {
    return failure(
        fmt::format("checkpoints: {}: the step's saved tensors name another operator "
                    "than the one that saved them",
                    *mistake));
  }
  return rewritten;
}

bool is_second_run(const KernelNode& node) {
  return unnumbered(node.name).ends_with(".recomputed");
}

}  // namespace stowage
