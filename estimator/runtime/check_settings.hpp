// CheckSettings: the circumstances of a check: the runtime and its allocator, the software, and how
// much of the card the process may not take.
#pragma once

#include <optional>
#include <vector>

#include "estimator/allocator/allocator_settings.hpp"
#include "estimator/allocator/tensorflow_memory.hpp"
#include "estimator/allocator/theano_memory.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/base/runtime.hpp"
#include "estimator/card/software_stack.hpp"
#include "estimator/memory/step_memory.hpp"

namespace stowage {

struct CheckSettings {
  Runtime runtime = default_runtime;
  Bytes in_use;                  ///< held by others on the card
  Bytes reserve;                 ///< to be left free
  std::optional<Bytes> context;  ///< instead of what is known of the card
  SoftwareStack stack = {};
  AllocatorSettings allocator = {};  ///< of PyTorch's allocator
  TensorFlowMemory tensorflow = {};  ///< with several logical devices: the step is a replica's
  TheanoMemory theano = {};
  /// What the same process keeps beside the step (evaluation.hpp); counted as tensors.
  std::vector<RuntimeBuffer> resident = {};
};

}  // namespace stowage
