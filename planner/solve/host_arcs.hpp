// HostArcs: prices on the host's memory, as arcs of the residency cut.
//
// What host_use() counts has the form of a cut, too. For the readers of a version, in their order,
// z_j says: neither reader j nor a later one needs the version on the host.
//
//   arc            capacity             what it says
//   z_j -> x_j     infinite             ... so the reader runs on the GPU
//   z_j -> r_j     infinite             ... and the copy stays in the gap before it
//   z_j -> z_j+1   infinite             ... and the later ones need none either
//   source -> z_j  p * bytes            paid for each step from the reader before to this one at
//                                       which the version lies on the host
//   g -> z_j       q * bytes            ... and once more if the item is ever on the GPU (g): a
//   u_i -> g       infinite             copy crosses then, so that it is pinned
//
// p is the price of any byte on the host, q the one beside it of a pinned byte. The same from the
// source and from g to x_v for what v writes on the CPU at its own step, and from the source to x_v
// for temporaries. An item that has one version on the GPU alone and another on the CPU alone is
// pageable and is priced as pinned: that is the only difference.
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
  std::vector<Handle> stays;    ///< by touch: the gap before it is resident; on_sink: there is none
};

class HostArcs {
 public:
  /// All must outlive it.
  HostArcs(const CutModel& model, const HostPrices& prices, PricedNetwork& network);

  void add_operation(std::int32_t step, Handle device);
  void add_item(std::size_t index, const ItemHandles& handles);
  /// What the limits are worth at these prices, in CutModel::unit(), rounded up.
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
