// The modules that run in a recorded step's forward as a tree, and what a row of forward kernels
// saves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/document/step_document.hpp"
#include "estimator/memory/sized_step.hpp"
#include "planner/problem/rates.hpp"

namespace stowage {

/// Forward nodes that follow one another, both ends included.
struct NodeRange {
  std::int32_t first = -1, last = -1;

  bool operator==(const NodeRange&) const = default;
};

struct TreeModule {
  std::string path;
  bool is_sequence = false;           ///< children run one after the other, and are called 0, 1, 2
  std::optional<NodeRange> range;     ///< none: it runs no kernel, or others run in between
  std::vector<std::size_t> children;  ///< in the order in which they run
};

/// O(nodes * depth + saved).
class ModuleTree {
 public:
  ModuleTree(const SizedStep& step, const Rates& rates, const std::vector<RecordedModule>& modules);

  [[nodiscard]] const std::vector<TreeModule>& modules() const { return modules_; }
  [[nodiscard]] const std::vector<std::size_t>& roots() const { return roots_; }

  /// What the range's operators save, that they made and nothing else keeps: what is let go where
  /// the range runs again, and what its second run makes.
  [[nodiscard]] Bytes inside(const NodeRange& range) const;
  /// What it reads, did not make, and is kept for its second run alone, by StorageId.
  [[nodiscard]] std::vector<StorageId> inputs(const NodeRange& range) const;
  /// Whether a second run finds what the first one found, and ends where the first one's last
  /// tensor was saved: forward writes to nothing that it is given, from its first kernel on, and to
  /// nothing that it saves, afterwards.
  [[nodiscard]] bool can_run_again(const NodeRange& range) const;
  [[nodiscard]] double seconds(const NodeRange& range) const;
  [[nodiscard]] std::vector<OperatorId> operators(const NodeRange& range) const;
  /// What all operators save, and nothing else keeps.
  [[nodiscard]] Bytes saved() const { return saved_; }
  [[nodiscard]] Bytes bytes(StorageId id) const { return step_.bytes(id); }

 private:
  /// A storage that autograd alone keeps: the node that makes it, and the last forward node of the
  /// operators that save it.
  struct SavedStorage {
    std::int32_t made = -1, saved = -1;
    Bytes bytes;
  };
  void add_modules(const std::vector<RecordedModule>& modules);
  void find_ranges();
  void find_saved();

  const SizedStep& step_;
  std::vector<TreeModule> modules_;
  std::vector<std::size_t> roots_;
  std::vector<std::int32_t> made_;      // by storage: the first forward node that writes it
  std::vector<bool> is_saved_;          // by storage
  std::vector<SavedStorage> by_maker_;  // ascending
  std::vector<std::int32_t>
      overwritten_;  // by node: the oldest maker of what it writes that was there
  std::vector<std::int32_t> last_written_;  // by storage: by a forward node; -1: by none
  std::vector<bool> saves_written_;     // by node: its operator saves what is written to afterwards
  std::vector<double> seconds_before_;  // by node, and one past the last
  Bytes saved_;
};

}  // namespace stowage
