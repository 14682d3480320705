#include "estimator/rewrite/micro_batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

constexpr std::int64_t seed_stride = 1'000'003;  // more than a model has operators

/// Kernels that make a gradient from a loss: their attribute `scale` includes the micro-batch's
/// share.
bool begins_at_loss(Kernel kernel) {
  switch (kernel) {
    case Kernel::nll_loss_backward:
    case Kernel::cross_entropy_backward:
    case Kernel::mse_backward:
    case Kernel::l1_backward:
    case Kernel::bce_backward:
    case Kernel::kl_div_backward:
      return true;
    default:
      return false;
  }
}

void let_go(KernelNode& node, StorageId id) {
  const auto held = std::find(node.holds.rbegin(), node.holds.rend(), id);
  if (held != node.holds.rend()) node.holds.erase(std::next(held).base());
}

/// Null: there is none, or it has another type, which a step file may contain.
template <typename T>
const T* attribute(const Attributes& attributes, std::string_view name) {
  const auto found =
      std::ranges::find(attributes.entries(), name, [](const auto& entry) { return entry.first; });
  return found == attributes.entries().end() ? nullptr : std::get_if<T>(&found->second);
}

void grow_seed(Attributes& attributes, int micro_batch) {
  const auto* seed = attribute<std::int64_t>(attributes, "seed");
  if (seed == nullptr) return;
  // Unsigned, since a step's file may hold the largest seed.
  const auto grown =
      static_cast<std::uint64_t>(*seed) +
      static_cast<std::uint64_t>(micro_batch) * static_cast<std::uint64_t>(seed_stride);
  attributes.set("seed", static_cast<std::int64_t>(grown));
}

class Repetition {
 public:
  Repetition(StepGraph step, int count)
      : step_(std::move(step)),
        part_(step_.micro_batch),
        count_(count),
        first_node_(part_.first_node.index()),
        end_node_(part_.end_node.index()),
        first_storage_(part_.first_storage.index()),
        end_storage_(part_.end_storage.index()) {}

  StepGraph run() &&;

 private:
  // Which storages and nodes are repeated.
  void find_repeated_storages();
  void find_later_nodes();
  [[nodiscard]] StorageId in(StorageId id, int micro_batch) const;
  [[nodiscard]] NodeId in(NodeId id, int micro_batch) const;
  [[nodiscard]] TensorView in(TensorView view, int micro_batch) const;
  [[nodiscard]] NodeId last_node(int micro_batch) const;

  // The parts of the result.
  void move_the_rest();
  void repeat_holds();
  void repeat_storages();
  void repeat_nodes();
  void repeat_lists();
  void keep_variables();
  void make_names();
  void put_in_place(KernelNode& node, int micro_batch) const;
  [[nodiscard]] KernelNode repeated(std::size_t node, int micro_batch) const;
  [[nodiscard]] KernelNode addition(const GradientArrival& arrival, int micro_batch) const;

  StepGraph step_;
  const MicroBatch& part_;
  int count_;
  std::size_t first_node_, end_node_, first_storage_, end_storage_;
  std::vector<int> rank_;           // by storage within the part: among the repeated ones; -1: not
  std::vector<std::size_t> again_;  // the repeated storages
  std::vector<int> place_;          // by node within the part: where it is in a later micro-batch
  std::size_t later_nodes_ = 0;     // how many a later micro-batch has
  std::vector<NodeId> taken_over_;  // by storage within the part: it is .grad after this node
  std::vector<Storage> storages_after_;
  std::vector<KernelNode> nodes_after_;
};

// Persistent storages exist once, and so do those that only the first micro-batch makes.
void Repetition::find_repeated_storages() {
  const std::size_t count = end_storage_ - first_storage_;
  std::vector<bool> first_only(count, false);
  for (const NodeId id : part_.first_only) {
    for (const TensorView& written : step_.node(id).writes) {
      const std::size_t at = written.storage.index();
      if (at >= first_storage_ && at < end_storage_) first_only[at - first_storage_] = true;
    }
  }
  rank_.assign(count, -1);
  again_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Storage& storage = step_.storages[first_storage_ + i];
    if (first_only[i] || storage.persistence == Persistence::persistent) continue;
    rank_[i] = static_cast<int>(again_.size());
    again_.push_back(first_storage_ + i);
  }
  taken_over_.assign(count, NodeId{});
  for (const GradientArrival& arrival : part_.arrivals) {
    const StorageId kept = step_.gradients[arrival.parameter.index()].storage;
    if (kept != arrival.gradient.storage) continue;
    if (kept.index() < first_storage_ || kept.index() >= end_storage_) continue;
    taken_over_[kept.index() - first_storage_] = arrival.after;
  }
}

void Repetition::find_later_nodes() {
  place_.assign(end_node_ - first_node_, -1);
  auto skipped = part_.first_only.begin();
  auto arrival = part_.arrivals.begin();
  std::size_t place = 0;
  for (std::size_t i = 0; i < place_.size(); ++i) {
    const NodeId id = NodeId::of(first_node_ + i);
    if (skipped != part_.first_only.end() && *skipped == id) {
      ++skipped;
    } else {
      place_[i] = static_cast<int>(place++);
    }
    for (; arrival != part_.arrivals.end() && arrival->after == id; ++arrival) ++place;
  }
  later_nodes_ = place;
}

StorageId Repetition::in(StorageId id, int micro_batch) const {
  if (!id.valid() || id.index() < first_storage_) return id;
  const std::size_t more = static_cast<std::size_t>(count_ - 1) * again_.size();
  if (id.index() >= end_storage_) return StorageId::of(id.index() + more);
  const int rank = rank_[id.index() - first_storage_];
  if (micro_batch == 0 || rank < 0) return id;
  return StorageId::of(end_storage_ + static_cast<std::size_t>(micro_batch - 1) * again_.size() +
                       static_cast<std::size_t>(rank));
}

// None: the micro-batch does not run the node.
NodeId Repetition::in(NodeId id, int micro_batch) const {
  if (!id.valid() || id.index() < first_node_) return id;
  const std::size_t more = static_cast<std::size_t>(count_ - 1) * later_nodes_;
  if (id.index() >= end_node_) return NodeId::of(id.index() + more);
  if (micro_batch == 0) return id;
  const int place = place_[id.index() - first_node_];
  if (place < 0) return {};
  return NodeId::of(end_node_ + static_cast<std::size_t>(micro_batch - 1) * later_nodes_ +
                    static_cast<std::size_t>(place));
}

TensorView Repetition::in(TensorView view, int micro_batch) const {
  view.storage = in(view.storage, micro_batch);
  return view;
}

NodeId Repetition::last_node(int micro_batch) const {
  return NodeId::of(end_node_ + static_cast<std::size_t>(micro_batch) * later_nodes_ - 1);
}

void Repetition::put_in_place(KernelNode& node, int micro_batch) const {
  for (TensorView& view : node.reads) view.storage = in(view.storage, micro_batch);
  for (TensorView& view : node.writes) view.storage = in(view.storage, micro_batch);
  for (StorageId& id : node.temporaries) id = in(id, micro_batch);
  for (StorageId& id : node.holds) id = in(id, micro_batch);
}

// The storages and nodes of the step, with room for the others in between.
void Repetition::move_the_rest() {
  const auto split = [](auto& all, std::size_t end, std::size_t more, auto& after) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(end);
    after.assign(std::make_move_iterator(from), std::make_move_iterator(all.end()));
    all.erase(from, all.end());
    all.reserve(end + more + after.size());
  };
  const auto later = static_cast<std::size_t>(count_ - 1);
  split(step_.storages, end_storage_, later * again_.size(), storages_after_);
  split(step_.nodes, end_node_, later * later_nodes_, nodes_after_);
}

// In the order of the storages in the result: up to the end of the first micro-batch, the repeated
// ones, those behind.
void Repetition::repeat_holds() {
  const ScriptHolds before = std::move(step_.script_holds);
  step_.script_holds = {};
  const StorageId end = StorageId::of(end_storage_);
  for (const auto& [storage, hold] : before) {
    if (storage < end) step_.script_holds.set(storage, hold);
  }
  for (int i = 1; i < count_ && !before.empty(); ++i) {
    ScriptHolds::Cursor holds(before);
    for (const std::size_t source : again_) {
      ScriptHold hold = holds.advance_to(StorageId::of(source));
      hold.first_made_by = in(hold.first_made_by, i);
      hold.loaded_before = in(hold.loaded_before, i);
      step_.script_holds.set(in(StorageId::of(source), i), hold);
    }
  }
  for (auto [storage, hold] : before) {
    if (storage < end) continue;
    hold.first_made_by = in(hold.first_made_by, 0);
    step_.script_holds.set(in(storage, 0), hold);
  }
}

void Repetition::repeat_storages() {
  repeat_holds();
  for (int i = 1; i < count_; ++i) {
    for (const std::size_t source : again_) step_.storages.push_back(step_.storages[source]);
  }
  step_.storages.insert(step_.storages.end(), std::make_move_iterator(storages_after_.begin()),
                        std::make_move_iterator(storages_after_.end()));
}

KernelNode Repetition::repeated(std::size_t source, int micro_batch) const {
  KernelNode node = step_.nodes[source];
  node.micro_batch = micro_batch;
  // It adds to the gradient that the first micro-batch took over.
  std::vector<StorageId> kept;
  for (const TensorView& written : node.writes) {
    const std::size_t at = written.storage.index();
    if (at < first_storage_ || at >= end_storage_) continue;
    const NodeId taken = taken_over_[at - first_storage_];
    if (taken.valid() && source > taken.index()) kept.push_back(written.storage);
  }
  const auto place = [&](TensorView& view) {
    const bool stays = std::find(kept.begin(), kept.end(), view.storage) != kept.end();
    view.storage = in(view.storage, stays ? 0 : micro_batch);
  };
  for (TensorView& view : node.reads) place(view);
  for (TensorView& view : node.writes) place(view);
  for (StorageId& id : node.temporaries) id = in(id, micro_batch);
  for (StorageId& id : node.holds) id = in(id, micro_batch);
  return node;
}

KernelNode Repetition::addition(const GradientArrival& arrival, int micro_batch) const {
  const TensorView sum = in(step_.gradients[arrival.parameter.index()], 0);
  KernelNode node;
  node.name = dotted(step_.layer(arrival.op), "sum_gradients");
  node.kernel = Kernel::accumulate;
  node.phase = Phase::backward;
  node.op = arrival.op;
  node.micro_batch = micro_batch;
  node.reads = {sum, in(arrival.gradient, micro_batch)};
  node.writes = {sum};
  node.flops = element_count(arrival.gradient.shape);
  return node;
}

void Repetition::repeat_nodes() {
  for (int i = 1; i < count_; ++i) {
    auto arrival = part_.arrivals.begin();
    for (std::size_t n = first_node_; n < end_node_; ++n) {
      if (place_[n - first_node_] >= 0) {
        KernelNode node = repeated(n, i);
        grow_seed(node.attributes, i);
        if (node.convolution >= 0) {
          node.convolution += i * static_cast<int>(step_.convolutions.size());
        }
        step_.nodes.push_back(std::move(node));
      }
      for (; arrival != part_.arrivals.end() && arrival->after.index() == n; ++arrival) {
        step_.nodes.push_back(addition(*arrival, i));
      }
    }
  }
  const std::size_t repeated_end = step_.nodes.size();
  step_.nodes.insert(step_.nodes.end(), std::make_move_iterator(nodes_after_.begin()),
                     std::make_move_iterator(nodes_after_.end()));
  for (std::size_t n = 0; n < end_node_; ++n) put_in_place(step_.nodes[n], 0);
  for (std::size_t n = repeated_end; n < step_.nodes.size(); ++n) put_in_place(step_.nodes[n], 0);
  for (std::size_t n = first_node_; n < repeated_end; ++n) {
    KernelNode& node = step_.nodes[n];
    if (!begins_at_loss(node.kernel)) continue;
    if (const auto* scale = attribute<double>(node.attributes, "scale")) {
      node.attributes.set("scale", *scale / count_);
    }
  }
}

template <typename T, typename Place>
void repeat(std::vector<T>& all, int count, const Place& place) {
  const std::size_t size = all.size();
  all.reserve(size * static_cast<std::size_t>(count));
  for (int i = 1; i < count; ++i) {
    for (std::size_t k = 0; k < size; ++k) all.push_back(place(all[k], i));
  }
}

void Repetition::repeat_lists() {
  const auto view_in = [&](const TensorView& view, int i) { return in(view, i); };
  repeat(step_.convolutions, count_, [](const ConvolutionCall& call, int) { return call; });
  repeat(step_.inputs, count_, view_in);
  repeat(step_.losses, count_, view_in);
  step_.output = in(std::move(step_.output), count_ - 1);
  for (TensorView& gradient : step_.gradients) gradient.storage = in(gradient.storage, 0);
  for (SavedTensor& saved : step_.saved) saved.storage = in(saved.storage, 0);
}

// A variable holds its value until the next micro-batch assigns it; the last value lives as long as
// in the step of one micro-batch.
void Repetition::keep_variables() {
  const auto hold = [&](NodeId node, StorageId storage) {
    if (node.valid()) step_.nodes[node.index()].holds.push_back(storage);
  };
  for (int i = 0; i < count_; ++i) {
    const bool last = i + 1 == count_;
    for (const ScriptVariable& variable : part_.variables) {
      const StorageId id = in(variable.storage, i);
      const bool from_host = step_.storage(id).persistence == Persistence::from_host;
      switch (variable.kind) {
        case ScriptVariable::Kind::first_gradient:
          // It moves to the last node of this micro-batch.
          if (i > 0) {
            const NodeId node = in(NodeId::of(end_node_ - 1), i);
            if (node.valid()) let_go(step_.nodes[node.index()], id);
            hold(last_node(i), id);
          }
          break;
        case ScriptVariable::Kind::result:
          if (last) break;
          step_.script_holds.update(id, [](ScriptHold& kept) { kept.replaced_after = {}; });
          hold(in(variable.assigned_after, i + 1), id);
          break;
        case ScriptVariable::Kind::input:
          step_.script_holds.update(id, [&](ScriptHold& kept) {
            kept.held_to_end = last;
            if (i > 0 && from_host) {
              kept.loaded_before = NodeId::of(last_node(i - 1).index() + 1);
            }
          });
          if (!last) hold(last_node(i), id);
          break;
      }
    }
  }
}

// Names are made as in a step of one micro-batch: equal ones are numbered in the order in which
// they are made. Persistent storages, and the nodes that make them, keep their names.
void Repetition::make_names() {
  const auto add_suffix = [&](std::string& name, int micro_batch) {
    name += '@';
    name += std::to_string(micro_batch);
  };
  const std::size_t repeated_storages =
      end_storage_ + static_cast<std::size_t>(count_ - 1) * again_.size();
  std::vector<std::string*> names;
  std::vector<std::size_t> hashes;
  const auto renumber = [&] {
    hashes.clear();
    for (const std::string* name : names) hashes.push_back(name_hash(*name));
    number_repeated(names, hashes);
    names.clear();
  };
  for (std::size_t s = 0; s < repeated_storages; ++s) {
    Storage& storage = step_.storages[s];
    storage.name = unnumbered(storage.name);
    names.push_back(&storage.name);
    if (s < first_storage_ || storage.persistence == Persistence::persistent) continue;
    const bool first = s < end_storage_;
    add_suffix(storage.name, first ? 0 : 1 + static_cast<int>((s - end_storage_) / again_.size()));
  }
  renumber();
  const auto makes_what_lasts = [&](const KernelNode& node) {
    return std::all_of(node.writes.begin(), node.writes.end(), [&](const TensorView& written) {
      return step_.storage(written.storage).persistence == Persistence::persistent;
    });
  };
  auto first_only = part_.first_only.begin();
  for (std::size_t n = first_node_; n <= last_node(count_ - 1).index(); ++n) {
    KernelNode& node = step_.nodes[n];
    node.name = unnumbered(node.name);
    names.push_back(&node.name);
    const bool alone = first_only != part_.first_only.end() && first_only->index() == n;
    if (alone) ++first_only;
    if (!alone || !makes_what_lasts(node)) add_suffix(node.name, node.micro_batch);
  }
  renumber();
}

StepGraph Repetition::run() && {
  find_repeated_storages();
  find_later_nodes();
  move_the_rest();
  repeat_storages();
  repeat_nodes();
  repeat_lists();
  keep_variables();
  make_names();
  step_.settings.micro_batches = count_;
  return std::move(step_);
}

// Why the step cannot be repeated; empty: it can.
bool is_ascending(const std::vector<NodeId>& ids) {
  return std::ranges::adjacent_find(ids, std::ranges::greater_equal()) == ids.end();
}

std::string problem_of(const StepGraph& step) {
  const MicroBatch& part = step.micro_batch;
  const auto within = [](auto first, auto end, std::size_t size) {
    return first.valid() && end.valid() && first <= end && end.index() <= size;
  };
  if (!within(part.first_node, part.end_node, step.nodes.size()) ||
      part.first_node == part.end_node ||
      !within(part.first_storage, part.end_storage, step.storages.size())) {
    return "it does not say which of its nodes and storages are one micro-batch's";
  }
  const auto runs = [&](NodeId id) { return part.first_node <= id && id < part.end_node; };
  const auto exists = [&](StorageId id) { return id.valid() && id.index() < step.storages.size(); };
  if (!std::all_of(part.first_only.begin(), part.first_only.end(), runs) ||
      !is_ascending(part.first_only)) {
    return "the nodes that only the first micro-batch runs are not nodes of it in their order";
  }
  if (part.first_only.size() == part.end_node.index() - part.first_node.index()) {
    return "the first micro-batch alone runs all of its nodes";
  }
  NodeId last = part.first_node;
  for (const GradientArrival& arrival : part.arrivals) {
    const bool known = arrival.parameter.valid() &&
                       arrival.parameter.index() < step.gradients.size() &&
                       exists(step.gradients[arrival.parameter.index()].storage) &&
                       exists(arrival.gradient.storage) &&
                       (!arrival.op.valid() || arrival.op.index() < step.origins.size());
    if (!known || !runs(arrival.after) || arrival.after < last) {
      return "a gradient of a parameter does not arrive in it";
    }
    last = arrival.after;
  }
  for (const ScriptVariable& variable : part.variables) {
    const bool assigned =
        variable.kind != ScriptVariable::Kind::result || runs(variable.assigned_after);
    if (!exists(variable.storage) || !assigned) {
      return "a variable of its training script is not of its micro-batch";
    }
  }
  return {};
}

}  // namespace

std::size_t nodes_with_micro_batches(const StepGraph& step, std::int64_t count) {
  const MicroBatch& part = step.micro_batch;
  const std::size_t all = part.end_node.index() - part.first_node.index();
  const std::size_t later = all - std::min(all, part.first_only.size()) + part.arrivals.size();
  const auto more = static_cast<std::size_t>(std::max<std::int64_t>(count, 1) - 1);
  if (later > 0 && more > most_rewritten_nodes / later) return most_rewritten_nodes + 1;
  return step.nodes.size() + more * later;
}

Result<StepGraph> with_micro_batches(StepGraph step, std::int64_t count) {
  if (count < 1) return failure("a step has at least one micro-batch");
  if (step.settings.micro_batches != 1) {
    return failure(fmt::format("the step of '{}' has {} micro-batches already", step.model,
                               step.settings.micro_batches));
  }
  if (count == 1) return step;
  if (!step.settings.recomputed.empty()) {
    return failure(fmt::format("the step of '{}' recomputes values; micro-batches come before that",
                               step.model));
  }
  if (const std::string problem = problem_of(step); !problem.empty()) {
    return failure(fmt::format("the step of '{}' cannot be repeated: {}", step.model, problem));
  }
  const std::size_t nodes = nodes_with_micro_batches(step, count);
  const auto storages = static_cast<std::int64_t>(step.storages.size());
  if (nodes > most_rewritten_nodes ||
      count > std::numeric_limits<std::int32_t>::max() / std::max<std::int64_t>(storages, 1)) {
    return failure(fmt::format("{} micro-batches of '{}' make a step of more than {} kernel calls",
                               count, step.model, most_rewritten_nodes));
  }
  return Repetition(std::move(step), static_cast<int>(count)).run();
}

}  // namespace stowage
