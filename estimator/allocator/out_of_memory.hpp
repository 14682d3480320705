// OutOfMemory: a refused allocation, with the figures that the runtime's error message prints.
#pragma once

#include <optional>
#include <string>

#include "estimator/base/bytes.hpp"

namespace stowage {

struct OutOfMemory {
  Bytes requested;               ///< as the program asked
  Bytes tried;                   ///< requested from the driver: "Tried to allocate"
  Bytes total;                   ///< of the device
  Bytes free;                    ///< of the device, after the cache was released
  Bytes process;                 ///< used by this process: allocator, context, libraries
  std::optional<Bytes> allowed;  ///< limit by a memory fraction or setting
  Bytes allocated;
  Bytes reserved;
  bool refused_early = false;  ///< AllocatorSettings::refuse_early

  bool operator==(const OutOfMemory&) const = default;
};

/// PyTorch's message: "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity
/// of 1.95 GiB of which 13.69 MiB is free. ...", without its advice at the end.
[[nodiscard]] std::string pytorch_message(const OutOfMemory& failure);

/// A size as PyTorch prints it: "512 bytes", "1.50 KiB", "20.00 MiB", "1.95 GiB".
[[nodiscard]] std::string pytorch_size(Bytes bytes);

}  // namespace stowage
