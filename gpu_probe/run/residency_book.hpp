// ResidencyBook: the executor's own account of which version of which storage is valid where.
//
// It follows the definition in planner/plan/plan.hpp as the step goes on and knows nothing of how
// the plan was made: it is told what begins, ends and runs, in the order in which that happens, and
// records a violation, with names and steps, wherever a plan asks for what is not there.
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
  /// The plan is kept by reference. Precondition: check_structure(plan) passed.
  explicit ResidencyBook(const Plan& plan);

  [[nodiscard]] const std::vector<Residence>& residences(Device device) const {
    return side(device).residences;
  }

  /// Again, for the next step: nothing is there yet but what begin_residence will bring.
  void begin_step();
  // What happens, in its order. `step` is the boundary, or the node.
  void begin_residence(Device side, std::size_t residence);
  /// The storage's initial contents have been put there.
  void loaded(Device side, StorageId storage);
  void end_residence(Device side, std::size_t residence, std::int32_t step);
  void begin_transfer(std::size_t transfer);
  void end_transfer(std::size_t transfer);
  // A node of the CPU begins and ends, for the book, when it is issued; until it has finished, what
  // it reads may not be written, and what it writes not be touched, but by those behind it.
  void begin_node(NodeId node);
  void end_node(NodeId node);
  void finish_node(NodeId node);
  void end_step();

  /// The residence that holds the storage now.
  [[nodiscard]] std::optional<std::size_t> residence(Device side, StorageId storage) const;
  /// Whether that residence holds the newest version.
  [[nodiscard]] bool newest(Device side, StorageId storage) const;
  [[nodiscard]] bool was_there_at_start(Device side, StorageId storage) const;
  /// The other side's copy has just been made stale by the node.
  [[nodiscard]] std::vector<StorageId> made_stale(Device written_on, NodeId node) const;
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }

  /// Bytes of all residences on the GPU and of the node's workspace, during that node.
  [[nodiscard]] Bytes live_on_gpu(NodeId node) const;

 private:
  static constexpr int no_value = -1;

  /// A storage's place on one side.
  struct Copy {
    std::size_t residence = 0;
    int version = no_value;
  };
  struct Side {
    std::vector<Residence> residences;               // two_sides.hpp's
    std::vector<std::optional<Copy>> copies;         // by StorageId
    std::map<Bytes, std::size_t> by_offset;          // live residences
    std::vector<std::optional<Bytes>> start_offset;  // of what was there when the step started
    Bytes live;
  };
  struct Flight {
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
  void check_holds(NodeId id, StorageId storage, bool writes);
  void hold(NodeId id);
  [[nodiscard]] const Flight* flight(StorageId storage) const;
  void violation(std::string text);

  const Plan& plan_;
  const StepGraph& graph_;
  std::array<Side, 2> sides_;  // by Device
  std::vector<int> newest_;    // by StorageId
  std::vector<Flight> flights_;
  struct Hold {
    NodeId node;
    StorageId storage;
    bool writes = false;
  };
  std::vector<Hold> holds_;  // of the CPU's nodes that have been issued and not awaited
  std::vector<std::string> violations_;
};

[[nodiscard]] const char* side_name(Device device);  ///< "host", "GPU"

}  // namespace stowage
