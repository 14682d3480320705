// fold: solves equal components of a flow network only once.
//
// Without its terminals a network falls into components, and a minimum cut of the whole is one of
// each. Identical layers leave components that are equal arc for arc, since what they keep and move
// costs the same wherever memory does. Of equal components only the first stays in the network.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/solve/min_cut.hpp"

namespace stowage {

namespace flow {
inline constexpr std::int32_t source = 0, sink = 1, first_node = 2;
}  // namespace flow

/// One of the two directions of an arc between vertices: the terminals, and nodes from first_node.
struct HalfArc {
  std::int32_t tail;
  std::int32_t head;
  Capacity capacity;
  bool operator==(const HalfArc&) const = default;
};

struct FoldedNetwork {
  std::vector<HalfArc> halves;     ///< of the components that are the first of their kind
  std::vector<std::int32_t> like;  ///< by vertex: the vertex that stands for it in `halves`
};

/// `halves`: an arc, then its reverse, and so on. Two components are equal where numbering the
/// vertices of each in their order makes equal arcs in equal order. O(arcs) but for hashing.
[[nodiscard]] FoldedNetwork fold(const std::vector<HalfArc>& halves, std::int32_t vertices);

}  // namespace stowage
