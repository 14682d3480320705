// PlacementState: a placement that changes move by move, with its cost and its memory up to date.
//
// Unlike Placement it holds no inconsistent choice. A touch has a GPU copy exactly where its
// operation runs on the GPU or, for a CPU read, where the copy stays in a gap beside it. An
// operation that moves to the CPU drops what it writes. Costs are whole units of CutModel::unit(),
// so that undoing is exact.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/solve/host_ledger.hpp"
#include "planner/solve/placement_index.hpp"
#include "planner/solve/residency_cut.hpp"
#include "planner/solve/step_profile.hpp"

namespace stowage {

class PlacementState {
 public:
  /// The model and its index must outlive the state.
  PlacementState(const CutModel& model, const PlacementIndex& index, const Placement& start);

  [[nodiscard]] Capacity cost() const { return cost_; }
  [[nodiscard]] double cost_seconds() const;
  /// The largest excess of a step's memory over its limit; not positive: everything fits.
  [[nodiscard]] std::int64_t excess() const { return memory_.largest(); }
  [[nodiscard]] std::int64_t excess_at(std::int32_t step) const { return memory_.at(step); }
  [[nodiscard]] std::int32_t worst_step() const { return memory_.largest_at(); }
  [[nodiscard]] Placement placement() const;

  /// The memory on the host; null: the model does not limit it.
  [[nodiscard]] const HostLedger* host() const { return host_ ? &*host_ : nullptr; }
  /// Whether the limits of both sides are kept.
  [[nodiscard]] bool fits() const { return excess() <= 0 && (!host_ || host_->excess() <= 0); }
  /// Includes these prices of the host's memory in the cost from now on; empty: no longer.
  /// Precondition: no undo_to() a mark that was made before.
  void price_host(const HostPrices& prices);

  [[nodiscard]] const ResidencyProblem& problem() const { return problem_; }
  /// As CutModel::price_bits: a price times bytes is shifted right by so many bits.
  [[nodiscard]] int price_bits() const { return model_.price_bits; }
  [[nodiscard]] const std::vector<GapPlace>& gaps() const { return index_.gaps(); }
  [[nodiscard]] bool resident(const GapPlace& gap) const;
  /// Whether the problem pins the gap resident.
  [[nodiscard]] bool must_be_resident(const GapPlace& gap) const;
  /// Whether the gap may be resident: both ends can hold a GPU copy, the next touch reads it, and
  /// it is not pinned dropped.
  [[nodiscard]] bool may_be_resident(const GapPlace& gap) const;
  /// The cost that flipping the gap adds.
  [[nodiscard]] Capacity flip_cost(const GapPlace& gap);
  /// The largest excess inside the gap.
  [[nodiscard]] std::int64_t excess_in(const GapPlace& gap) const;
  void flip(const GapPlace& gap);

  [[nodiscard]] bool on_gpu(std::int32_t operation) const { return gpu_[index(operation)]; }
  /// Moves an operation. A move to the CPU also drops the gaps beside what the operation writes.
  void move(std::int32_t operation, bool to_gpu);
  /// The cost that a move to the CPU adds. Precondition: the operation is on the GPU.
  [[nodiscard]] Capacity cost_of_leaving(std::int32_t operation);
  /// The memory that a move to the CPU frees at another step. Precondition: both operations are on
  /// the GPU.
  [[nodiscard]] std::int64_t freed_by_leaving(std::int32_t operation, std::int32_t step) const;
  /// Whether the operation's own step has memory for it on the GPU without the gaps beside it.
  [[nodiscard]] bool has_room_for(std::int32_t operation) const;
  /// Whether nothing that the cost of moving the operation depends on has changed since settle()
  /// was called for it. False at first.
  [[nodiscard]] bool is_settled(std::int32_t operation) const { return settled_[index(operation)]; }
  void settle(std::int32_t operation) { settled_[index(operation)] = 1; }
  /// The gaps that lead to or from the operation's touches, as indices into gaps().
  [[nodiscard]] std::span<const std::int32_t> gaps_beside(std::int32_t operation) const {
    return index_.gaps_beside(operation);
  }
  [[nodiscard]] std::int32_t engine(std::int32_t operation) const {
    return engine_[index(operation)];
  }
  void set_engine(std::int32_t operation, std::int32_t engine);

  [[nodiscard]] std::size_t mark() const { return log_.size(); }
  void undo_to(std::size_t mark);

 private:
  struct Change {
    enum class Kind : std::uint8_t { gap, device, engine } kind;
    std::int32_t index;   ///< of gaps(), of operations
    std::int32_t before;  ///< the engine
  };
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] char& kept(std::int32_t item, std::int32_t gap) {
    return resident_[index(index_.first_gap(item) + gap)];
  }
  [[nodiscard]] bool is_kept(std::int32_t item, std::int32_t gap) const {
    return resident_[index(index_.first_gap(item) + gap)] != 0;
  }
  [[nodiscard]] bool present(std::int32_t item, std::int32_t touch) const;
  [[nodiscard]] bool can_hold(std::int32_t item, std::int32_t touch) const;
  [[nodiscard]] Capacity item_cost(std::int32_t item) const;
  [[nodiscard]] Capacity operation_cost(std::int32_t operation) const;
  [[nodiscard]] std::int64_t operation_memory(std::int32_t operation) const;
  [[nodiscard]] std::vector<std::int64_t> memory_now() const;
  [[nodiscard]] HostStay host_stay_of(std::int32_t item) const;
  void recount(std::int32_t item);
  [[nodiscard]] bool is_dropped_with(std::int32_t operation, const GapPlace& gap) const;
  void add_memory(std::int32_t step, std::int64_t bytes) {
    if (bytes != 0) memory_.add(StepRange::single(step), bytes);
  }
  void flip_gap(std::int32_t gap);
  void flip_device(std::int32_t operation);
  void put_engine(std::int32_t operation, std::int32_t engine);

  const CutModel& model_;
  const ResidencyProblem& problem_;
  const PlacementIndex& index_;
  std::vector<char> gpu_;
  std::vector<std::int32_t> engine_;
  std::vector<char> resident_;  ///< by place in gaps()
  std::vector<Capacity> item_cost_;
  Capacity cost_ = 0;
  StepProfile memory_;  ///< memory minus the limit
  std::optional<HostLedger> host_;
  std::vector<char> settled_;
  std::vector<Change> log_;
};

}  // namespace stowage
