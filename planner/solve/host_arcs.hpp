// HostArcs: adds prices of the host's memory to the residency cut, as arcs.
//
// What host_use() counts has the form of a cut, too. For the readers of a version, in their order,
// z_j says: neither reader j nor a later one needs the version on the host.
//
//   arc            capacity             meaning
//   z_j -> x_j     infinite             if no need from j on: the reader runs on the GPU,
//   z_j -> r_j     infinite             the copy stays in the gap before it,
//   z_j -> z_j+1   infinite             and the later readers need none either
//   source -> z_j  p * bytes            paid for each step from the reader before to this one at
//                                       which the version lies on the host
//   g -> z_j       q * bytes            paid once more if the item is ever on the GPU (g): a copy
//   u_i -> g       infinite             crosses then, so that the item is pinned
//
// p is the price of any byte on the host, q the price of a pinned byte beside it. What v writes on
// the CPU at its own step is priced by the same two arcs, from the source and from g to x_v;
// temporaries by an arc from the source to x_v. An item that has one version on the GPU alone and
// another on the CPU alone is pageable but is priced as pinned: that is the only difference.
#pragma once

#include <vector>

#include "planner/problem/versions.hpp"
#include "planner/solve/priced_network.hpp"
#include "planner/solve/residency_cut.hpp"

namespace stowage {

/// The handles of an item's unknowns.
struct ItemHandles {
  std::vector<Handle> device;   ///< by touch
  std::vector<Handle> present;  ///< by touch
  std::vector<Handle> stays;    ///< by touch: the gap before it is resident; on_sink: no gap
};

class HostArcs {
 public:
  /// All must outlive it.
  HostArcs(const CutModel& model, const HostPrices& prices, PricedNetwork& network);

  void add_operation(std::int32_t step, Handle device);
  void add_item(std::size_t index, const ItemHandles& handles);
  /// The limits times these prices, in CutModel::unit(), rounded up.
  [[nodiscard]] Wide budget_price() const;

 private:
  struct Amount {
    Wide all = 0, pinned = 0;
    [[nodiscard]] bool any() const { return all > 0 || pinned > 0; }
  };
  [[nodiscard]] Amount price_of(StepRange steps, Bytes bytes) const;
  void pay(const Amount& amount, Handle on_gpu, Handle unless);

  const CutModel& model_;
  const HostPrices& prices_;
  PricedNetwork& network_;
  PriceSums<Wide> all_, pinned_;
};

}  // namespace stowage
