// ScriptHolds: what an eager training script keeps of a step's storages beyond their kernels' use.
//
// Eager PyTorch frees a tensor when its last reference goes, and the script has references of its
// own: variables (`input`, `output`, `loss`), the gradients that zero_grad leaves in place, the
// batches that it uploads one after the other. The table stands beside StepGraph::storages and has
// an entry for each storage of which something is kept. Steps of other runtimes have entries for
// augmented inputs and for gradients that zero_grad leaves in place, and else none.
#pragma once

#include <algorithm>
#include <vector>

#include "estimator/base/id.hpp"

namespace stowage {

struct ScriptHold {
  /// A variable keeps the storage to the step's end.
  bool held_to_end = false;
  /// Valid: a from_host storage is uploaded only before this node (a later micro-batch's input).
  NodeId loaded_before = {};
  /// Valid: a persistent storage is made in the first step, by this node, out of what it reads
  /// (.grad under zero_grad(set_to_none=False)).
  NodeId first_made_by = {};
  /// Valid: a variable keeps the storage (`output`, `loss`) to the step's end, and the last step's
  /// until this node has run and the new value is assigned.
  NodeId replaced_after = {};

  /// A variable has it when the step is over.
  [[nodiscard]] bool outlives_step() const { return held_to_end || replaced_after.valid(); }
  bool operator==(const ScriptHold&) const = default;
};

/// By StorageId, without entries that hold nothing.
class ScriptHolds {
 public:
  struct Entry {
    StorageId storage;
    ScriptHold hold;
    bool operator==(const Entry&) const = default;
  };

  /// A storage without an entry has ScriptHold(). O(log entries).
  [[nodiscard]] const ScriptHold& of(StorageId storage) const {
    const auto at = std::ranges::lower_bound(entries_, storage, {}, &Entry::storage);
    return at != entries_.end() && at->storage == storage ? at->hold : nothing;
  }

  /// In the order of StorageId.
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }

  /// Replaces what is held of the storage. O(1) in ascending order of storages.
  void set(StorageId storage, const ScriptHold& hold);
  /// As set, with what `change` makes of the hold, a ScriptHold&.
  template <typename Change>
  void update(StorageId storage, const Change& change) {
    ScriptHold hold = of(storage);
    change(hold);
    set(storage, hold);
  }
  /// `change` has a NodeId& of each hold: its nodes have other numbers from now on.
  template <typename Change>
  void renumber_nodes(const Change& change) {
    for (auto& [storage, hold] : entries_) {
      for (NodeId* const id : {&hold.loaded_before, &hold.first_made_by, &hold.replaced_after}) {
        if (id->valid()) change(*id);
      }
    }
    std::erase_if(entries_, [](const Entry& entry) { return entry.hold == nothing; });
  }
  /// The storages from `end` on are no longer there.
  void drop_from(StorageId end);

  bool operator==(const ScriptHolds&) const = default;

  /// Reads the holds of storages that are asked for in ascending order. O(1) each.
  class Cursor {
   public:
    /// `holds` outlive it.
    explicit Cursor(const ScriptHolds& holds) : next_(holds.begin()), end_(holds.end()) {}
    [[nodiscard]] const ScriptHold& advance_to(StorageId storage) {
      while (next_ != end_ && next_->storage < storage) ++next_;
      return next_ != end_ && next_->storage == storage ? next_->hold : nothing;
    }

   private:
    std::vector<Entry>::const_iterator next_, end_;
  };

 private:
  static constexpr ScriptHold nothing = {};

  std::vector<Entry> entries_;
};

}  // namespace stowage
