// SavedCalls: the calls of autograd's hooks for saved tensors in a step, by their keys, as the
// validator counts them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// One call for a tensor that forward saves, and the one with which backward asks for it.
struct SavedTensorCall {
  std::string key;
  TensorView view;
  NodeId after;   ///< it is saved when this node has run; none: before the first
  NodeId before;  ///< backward asks for it before this node; none: it does not
  NodeId held;    ///< the last node during which the script has it too; none: not known
};

class SavedCalls {
 public:
  /// Of one micro-batch. A recorded step has keys of its own, of its first pass; a described one
  /// "LAYER#ROLE", its tensors are saved when their operator has run in forward, and asked for
  /// before it runs in backward. `left_out`: storages whose tensors go through no hook, as streamed
  /// parameters. O(nodes + saved * log saved).
  explicit SavedCalls(const StepGraph& step, const std::set<StorageId>& left_out = {});

  /// In the order of saving.
  [[nodiscard]] const std::vector<SavedTensorCall>& all() const { return calls_; }
  /// The place in all(); none: no tensor has this key.
  [[nodiscard]] std::optional<std::size_t> find(const std::string& key) const;
  /// The places in all() of the tensors that lie in it; empty: none does.
  [[nodiscard]] const std::vector<std::size_t>& within(StorageId storage) const {
    return within_[storage.index()];
  }
  /// The node before which backward asks for its first tensor; none: it asks for none.
  [[nodiscard]] NodeId backward_begins() const { return backward_begins_; }

 private:
  std::vector<SavedTensorCall> calls_;
  std::map<std::string, std::size_t> by_key_;
  std::vector<std::vector<std::size_t>> within_;  // by storage
  NodeId backward_begins_;
};

}  // namespace stowage
