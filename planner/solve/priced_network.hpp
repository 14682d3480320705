// PricedNetwork: a flow network whose terminals are handles like its nodes. An arc from the source
// to the sink becomes a constant.
#pragma once

#include <algorithm>
#include <cstdint>

#include "planner/solve/min_cut.hpp"

namespace stowage {

__extension__ typedef __int128 Wide;

/// An unknown of a residency cut: a node of the network, or one of the two decided values.
using Handle = std::int32_t;
inline constexpr Handle on_source = -1;  ///< on the GPU
inline constexpr Handle on_sink = -2;    ///< not on the GPU

struct PricedNetwork {
  FlowNetwork flow;
  Wide constant = 0;
  bool contradictory = false;

  /// An arc that is paid where `from` is on the source's side and `to` on the sink's.
  void arc(Handle from, Handle to, Capacity capacity) {
    if (from == on_sink || to == on_source || from == to || capacity == 0) return;
    if (from == on_source && to == on_sink) {
      if (capacity == infinite_capacity)
        contradictory = true;
      else
        constant += capacity;
    } else if (from == on_source) {
      add(flow.from_source[static_cast<std::size_t>(to)], capacity);
    } else if (to == on_sink) {
      add(flow.to_sink[static_cast<std::size_t>(from)], capacity);
    } else {
      flow.add_arc(from, to, capacity);
    }
  }

  /// An arc for a price of memory. A cut that pays more than `cost_cap`, which is above the cost of
  /// any placement, is never the least. So such a term is lowered to the cap: the sum of capacities
  /// then stays within 64 bits, and the bound stays a bound.
  void memory_arc(Handle from, Handle to, Wide amount, Capacity cost_cap) {
    if (from == on_source && to == on_sink)
      constant += amount;
    else
      arc(from, to, static_cast<Capacity>(std::min<Wide>(amount, cost_cap)));
  }

 private:
  static void add(Capacity& sum, Capacity capacity) {
    const bool infinite = sum == infinite_capacity || capacity == infinite_capacity;
    sum = infinite ? infinite_capacity : sum + capacity;
  }
};

}  // namespace stowage
