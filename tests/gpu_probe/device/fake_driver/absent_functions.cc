// The CUDA driver's functions that a pretended driver does not define itself: they exist and
// refuse.
#include "gpu_probe/driver/cuda_functions.hpp"

#define STOWAGE_ABSENT(name, symbol, arguments) \
  extern "C" __attribute__((weak, visibility("default"))) int symbol arguments;
STOWAGE_CUDA_QUERIES(STOWAGE_ABSENT)
STOWAGE_CUDA_CALLS(STOWAGE_ABSENT)
STOWAGE_CUDA_LANE_CALLS(STOWAGE_ABSENT)
#undef STOWAGE_ABSENT

namespace {
constexpr int not_supported = 801;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define STOWAGE_ABSENT(name, symbol, arguments) \
  extern "C" int symbol arguments { return not_supported; }
STOWAGE_CUDA_QUERIES(STOWAGE_ABSENT)
STOWAGE_CUDA_CALLS(STOWAGE_ABSENT)
STOWAGE_CUDA_LANE_CALLS(STOWAGE_ABSENT)
#undef STOWAGE_ABSENT
