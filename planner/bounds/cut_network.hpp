// CutNetwork: a flow network whose minimum cut is a bound. Its value is computed by push-relabel.
//
// Goldberg and Tarjan's push-relabel (1988) in Boost.Graph, whereas the planner's own cuts are
// found by Boykov and Kolmogorov's algorithm: the two share the problem and nothing else. (Tests
// solve the same networks by both.)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stowage {

class CutNetwork {
 public:
  using Node = std::int32_t;
  static constexpr Node source = 0, sink = 1;
  /// A capacity that no finite cut pays.
  static constexpr std::int64_t infinite = -1;

  struct Arc {
    Node from = source;
    Node to = sink;
    std::int64_t capacity = 0;
  };

  Node add_node() { return nodes_++; }
  /// Finite capacities are not negative and sum to less than 2^62.
  void add_arc(Node from, Node to, std::int64_t capacity);

  [[nodiscard]] Node nodes() const { return nodes_; }  ///< both terminals included
  [[nodiscard]] const std::vector<Arc>& arcs() const { return arcs_; }

 private:
  Node nodes_ = 2;
  std::vector<Arc> arcs_;
};

struct CutValue {
  bool infinite = false;   ///< every cut pays an infinite arc
  std::int64_t value = 0;  ///< of the least cut, if it is finite
};

/// `work`: how often arcs may be looked at; on return, what is left of that. nullopt: it was too
/// little. Deterministic.
[[nodiscard]] std::optional<CutValue> least_cut(const CutNetwork& network, std::int64_t& work);

}  // namespace stowage
