// ResidencyBook: the executor's own record of which version of which storage is valid on which
// side.
//
// It follows the definition in planner/plan/plan.hpp as the step goes on, and does not know how the
// plan was made. The executor tells it what begins, ends and runs, in that order. Where a plan uses
// what is not there, the book records a violation with names and steps.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

class ResidencyBook {
 public:
  /// The plan outlives this. Precondition: check_structure(plan) passed.
  explicit ResidencyBook(const Plan& plan);

  [[nodiscard]] const std::vector<Residence>& residences(Device device) const {
    return side(device).residences;
  }

  /// Starts the next step: no storage is anywhere until begin_residence().
  void begin_step();
  // Events, in their order. `step`: the boundary, or the node.
  void begin_residence(Device side, std::size_t residence);
  /// The storage's initial contents have been written there.
  void loaded(Device side, StorageId storage);
  void end_residence(Device side, std::size_t residence, std::int32_t step);
  void begin_transfer(std::size_t transfer);
  void end_transfer(std::size_t transfer);
  // For the book a node of the CPU begins and ends when it is issued. Until finish_node(), only
  // nodes behind it on the CPU may write what it reads or touch what it writes.
  void begin_node(NodeId node);
  void end_node(NodeId node);
  void finish_node(NodeId node);
  void end_step();

  /// The index of the residence that holds the storage now.
  [[nodiscard]] std::optional<std::size_t> residence(Device side, StorageId storage) const;
  /// Whether that residence holds the newest version.
  [[nodiscard]] bool newest(Device side, StorageId storage) const;
  [[nodiscard]] bool was_there_at_start(Device side, StorageId storage) const;
  /// The storages whose copy on the other side the node has just made stale.
  [[nodiscard]] std::vector<StorageId> made_stale(Device written_on, NodeId node) const;
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }

  /// Bytes of all residences on the GPU and of the node's workspace, while that node runs.
  [[nodiscard]] Bytes live_on_gpu(NodeId node) const;

 private:
  static constexpr int no_value = -1;

  /// A storage's place on one side.
  struct Copy {
    std::size_t residence = 0;
    int version = no_value;
  };
  struct Side {
    std::vector<Residence> residences;               // as in two_sides.hpp
    std::vector<std::optional<Copy>> copies;         // by StorageId
    std::map<Bytes, std::size_t> by_offset;          // live residences
    std::vector<std::optional<Bytes>> start_offset;  // by StorageId; none: not there at the start
    Bytes live;
  };
  struct CopyUnderWay {
    std::size_t transfer = 0;
    int version = no_value;
  };

  [[nodiscard]] Side& side(Device device) { return sides_[static_cast<std::size_t>(device)]; }
  [[nodiscard]] const Side& side(Device device) const {
    return sides_[static_cast<std::size_t>(device)];
  }
  [[nodiscard]] const std::string& name(StorageId id) const;
  [[nodiscard]] Bytes bytes(StorageId id) const;
  [[nodiscard]] std::string transfer_text(std::size_t transfer) const;
  [[nodiscard]] std::string place_text(const Residence& residence) const;
  void check_overlap(Device device, std::size_t residence);
  void check_workspace(NodeId node);
  void check_read(const KernelNode& node, NodeId id, StorageId storage);
  void check_place(const KernelNode& node, NodeId id, StorageId storage, const char* what);
  void check_end(Device device, StorageId storage);
  void check_in_use(NodeId id, StorageId storage, bool writes);
  void mark_in_use(NodeId id);
  [[nodiscard]] const CopyUnderWay* copy_under_way(StorageId storage) const;
  void violation(std::string text);

  const Plan& plan_;
  const StepGraph& graph_;
  std::array<Side, 2> sides_;  // by Device
  std::vector<int> newest_;    // by StorageId
  std::vector<CopyUnderWay> copies_under_way_;
  struct StorageInUse {
    NodeId node;
    StorageId storage;
    bool writes = false;
  };
  std::vector<StorageInUse> in_use_;  // by nodes of the CPU that were issued and not finished
  std::vector<std::string> violations_;
};

[[nodiscard]] const char* side_name(Device device);  ///< "host", "GPU"

}  // namespace stowage
