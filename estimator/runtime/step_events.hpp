// StepEvents: the order in which a step asks its runtime for memory and gives it back.
//
// A StorageUse says from when to when something is there; an allocator wants to know what comes
// first. Within a node what it makes is allocated in the order in which the lowering made it, which
// is PyTorch's own: results, then temporaries (a workspace comes after them and goes first). What
// the node was the last to need is freed when it has run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "estimator/memory/lifetimes.hpp"

namespace stowage {

struct MemoryEvent {
  enum class Kind : std::uint8_t {
    allocate,
    free,
    free_previous,  ///< the copy that a variable has kept from the last step
  };
  Kind kind = Kind::allocate;
  std::int32_t entry = 0;  ///< index into the uses
};

struct StepEvents {
  /// Of all nodes, one after the other: first the allocations, then what is freed after it has run.
  std::vector<MemoryEvent> events;
  std::vector<std::int32_t> first_event;  ///< by NodeId; one past the last node: events.size()
  std::vector<std::int32_t> first_free;   ///< by NodeId
};

/// What is there before the step has no events. What a later step finds there is not freed: with
/// `next`, what the step after it uses, entry by entry. What is kept to the step's end and no
/// longer is freed after the last of the `nodes`. O(entries + nodes).
[[nodiscard]] StepEvents step_events(std::span<const StorageUse> uses,
                                     std::span<const StorageUse> next, std::int32_t nodes);

}  // namespace stowage
