// relieve_host: lowers host memory at the step that exceeds its limit most, by the moves that cost
// least for a byte.
//
// Three kinds of move, each a bundle of changes:
//   keep on GPU    an item stays on the GPU in all its gaps, and its operations run there;
//   keep on CPU    all operations on an item run on the CPU: no copy crosses, so that it need not
//                  be pinned;
//   other device   one operation runs on the other side.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/solve/placement_state.hpp"

namespace stowage {

/// Makes moves until the step with the largest excess has none. May exceed the GPU's limits.
/// `prices`: of GPU memory, which a move pays for what it takes there. `kept_on_gpu`, by item: set
/// for items that now stay on the GPU. `effort` falls by the changes looked at. False: no move
/// helps.
bool relieve_host(PlacementState& state, const PlacementIndex& index,
                  const PriceSums<double>& prices, std::vector<char>& kept_on_gpu,
                  std::int64_t& effort);

}  // namespace stowage
