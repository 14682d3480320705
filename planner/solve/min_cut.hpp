// Minimum cuts of a flow network: the planner's oracle.
//
// A cut parts the nodes into a source side and a sink side and costs the capacities of the arcs
// that lead from the first to the second. Boykov and Kolmogorov's algorithm (2004, in Boost.Graph)
// is fastest on the planner's networks but has no good worst case. So it runs under a work limit,
// beyond which Goldberg and Tarjan's push-relabel (1988) takes over. Edmonds and Karp's (1972) is
// there for tests. All give the same value and the same sides.
#pragma once

#include <cstdint>
#include <vector>

namespace stowage {

using Capacity = std::int64_t;

/// A capacity that no finite cut pays; minimum_cut replaces it by 1 + the sum of the finite ones.
inline constexpr Capacity infinite_capacity = -1;

/// Finite capacities are not negative and sum to less than 2^62 (asserted). Parallel arcs add up.
struct FlowNetwork {
  struct Arc {
    std::int32_t from = 0;
    std::int32_t to = 0;
    Capacity capacity = 0;
  };
  std::vector<Capacity> from_source;  ///< by node: the capacity of source -> node
  std::vector<Capacity> to_sink;      ///< by node: the capacity of node -> sink
  std::vector<Arc> arcs;              ///< between nodes, the terminals left out

  [[nodiscard]] std::int32_t nodes() const { return static_cast<std::int32_t>(to_sink.size()); }
  std::int32_t add_node();
  void add_arc(std::int32_t from, std::int32_t to, Capacity capacity);
};

/// The side of a node in minimum cuts. All minimum cuts agree about `source` and `sink`; putting
/// every `either` on one of the sides, whichever, gives a minimum cut (the least and the greatest
/// in the lattice of Picard and Queyranne 1980).
enum class CutSide : std::uint8_t { source, sink, either };

struct MinimumCut {
  Capacity value = 0;
  bool infinite = false;      ///< every cut pays an infinite arc; the other members are unset
  std::vector<CutSide> side;  ///< by node
};

enum class FlowAlgorithm : std::uint8_t { guarded, boykov_kolmogorov, push_relabel, edmonds_karp };

/// The sides do not depend on the algorithm. Deterministic.
[[nodiscard]] MinimumCut minimum_cut(const FlowNetwork& network,
                                     FlowAlgorithm algorithm = FlowAlgorithm::guarded);

}  // namespace stowage
