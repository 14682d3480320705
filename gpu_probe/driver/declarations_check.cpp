// Compares our declarations of the CUDA driver's functions with its header. Built only where that
// is found; it has nothing but assertions.
#include <cuda.h>

#include <type_traits>

#include "gpu_probe/driver/cuda_functions.hpp"

namespace stowage {
namespace {

/// Handed over alike: two pointers, or two numbers of one size and kind.
template <class Ours, class Theirs>
constexpr bool alike = std::is_pointer_v<Ours>
                           ? std::is_pointer_v<Theirs>
                           : sizeof(Ours) == sizeof(Theirs) && !std::is_pointer_v<Theirs> &&
                                 std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;

template <class Ours, class Theirs>
constexpr bool same_call = false;
template <class Ours, class... OurArguments, class Theirs, class... TheirArguments>
constexpr bool same_call<Ours (*)(OurArguments...), Theirs (*)(TheirArguments...)> = [] {
  if constexpr (sizeof...(OurArguments) == sizeof...(TheirArguments)) {
    return sizeof(Ours) == sizeof(Theirs) && (alike<OurArguments, TheirArguments> && ...);
  } else {
    return false;
  }
}();

static_assert(same_call<int (*)(int, void*), int (*)(unsigned, char*)>);
static_assert(!same_call<int (*)(int), int (*)(long)>);
static_assert(!same_call<int (*)(void*), int (*)(long)>);
static_assert(!same_call<int (*)(float), int (*)(int)>);
static_assert(!same_call<int (*)(int), int (*)(int, int)>);

#define STOWAGE_COMPARE(name, symbol, arguments) \
  static_assert(same_call<decltype(CudaFunctions::name), decltype(&::symbol)>, #symbol);
STOWAGE_CUDA_QUERIES(STOWAGE_COMPARE)
STOWAGE_CUDA_CALLS(STOWAGE_COMPARE)
STOWAGE_CUDA_LANE_CALLS(STOWAGE_COMPARE)
STOWAGE_LATER_CUDA_FUNCTIONS(STOWAGE_COMPARE)
#undef STOWAGE_COMPARE

}  // namespace
}  // namespace stowage
