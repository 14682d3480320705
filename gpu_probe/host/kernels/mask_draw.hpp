// Dropout masks: which elements are kept is a function of the seed and the element's number alone,
// so that a mask is the same whenever its node runs again.
#pragma once

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {

class MaskDraw {
 public:
  /// Each element is dropped with probability p. KernelError unless p is in [0, 1).
  MaskDraw(double p, std::int64_t seed)
      : stream_(mixed(static_cast<std::uint64_t>(seed) + 1)),
        threshold_(static_cast<std::uint64_t>(p * 0x1p53)),
        scale_(static_cast<float>(1 / (1 - p))) {
    require(p >= 0 && p < 1, "the probability of dropping is {}, not in [0, 1)", p);
  }

  [[nodiscard]] bool keeps(std::int64_t element) const {
    return mixed(stream_ + static_cast<std::uint64_t>(element)) >> 11 >= threshold_;
  }
  /// What a kept element is multiplied by: 1 / (1 - p).
  [[nodiscard]] float scale() const { return scale_; }

 private:
  /// Splitmix64's output function: a good mix of a counter.
  static std::uint64_t mixed(std::uint64_t counter) {
    std::uint64_t z = counter * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  std::uint64_t stream_, threshold_;
  float scale_;
};

}  // namespace stowage::host
