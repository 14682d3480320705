// Draws dropout masks, given the probability and the seed.
#pragma once

#include "gpu_probe/kernels/bodies/dropout.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// Throws KernelError unless the probability of dropping is in [0, 1).
inline void require_probability(double p) {
  require(p >= 0 && p < 1, "the probability of dropping is {}, not in [0, 1)", p);
}
/// Each element is dropped with probability p.
[[nodiscard]] inline body::MaskDraw mask_draw(double p, std::int64_t seed) {
  require_probability(p);
  return {body::MaskDraw::mixed(static_cast<std::uint64_t>(seed) + 1),
          static_cast<std::uint64_t>(p * 0x1p53)};
}
/// The factor of a kept element.
[[nodiscard]] inline float mask_scale(double p) {
  require_probability(p);
  return static_cast<float>(1 / (1 - p));
}

}  // namespace stowage::kernels
