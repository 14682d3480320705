#include "estimator/base/kernel_set.hpp"

namespace stowage {

std::string_view to_string(KernelSet set) {
  return set == KernelSet::pytorch ? "pytorch" : "stowage";
}

}  // namespace stowage
