// Taking things back from the host where its memory is exceeded: what costs least a byte.
//
// Three ways out, each a bundle of moves:
//   home   an item stays on the GPU in all its gaps, and what touches it runs there;
//   away   all that touches an item runs on the CPU: no copy crosses, so that it need not be
//          pinned;
//   side   one operation runs on the other side.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/solve/placement_state.hpp"

namespace stowage {

/// At the step at which the host's limits are exceeded most: makes moves until they no longer are
/// there. May exceed the GPU's limits. `prices`: of GPU memory, as a move is charged
/// for what it takes there; `home`, by item, is set for what is taken back;
/// `effort` falls by what is looked at. False: no move helps.
bool relieve_host(PlacementState& state, const PlacementIndex& index,
                  const PriceSums<double>& prices, std::vector<char>& home, std::int64_t& effort);

}  // namespace stowage
