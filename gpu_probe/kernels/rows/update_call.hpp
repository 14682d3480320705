// Checks and launches an optimizer's call: the parameter, its gradient and its state, updated in
// place.
#pragma once

#include "gpu_probe/kernels/bodies/update.hpp"
#include "gpu_probe/kernels/rows/formats.hpp"

namespace stowage::kernels {

/// Throws KernelError where the number of tensors or an address does not fit, or a result does not
/// have the shape of the argument that it replaces.
void require_update_in_place(const KernelCall& call);
/// Throws KernelError unless there are `states` tensors of state, each of the parameter's shape.
void require_states(const KernelCall& call, std::size_t states);

/// A launch that updates element by element. make.operator()<Real>() returns the rule
/// (bodies/update.hpp). Precondition: require_update_in_place() and require_states() have passed.
template <class Make>
[[nodiscard]] Launches update_launches(const KernelCall& call, Arithmetic arithmetic, Make make) {
  const auto& p = call.writes[0];
  return {in_formats(p.type, arithmetic, [&]<class T, class Real>() {
    const auto rule = make.template operator()<Real>();
    body::Update<T, Real, std::remove_const_t<decltype(rule)>> update{
        elements<T>(p), any_floats(call.reads[1]), {}, rule};
    for (std::size_t i = 1; i < call.writes.size(); ++i) {
      update.state[i - 1] = elements<T>(call.writes[i]);
    }
    return each_index(update, count(p.shape));
  })};
}

}  // namespace stowage::kernels
