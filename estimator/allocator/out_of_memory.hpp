// OutOfMemory: a refused allocation, with what a runtime says of it.
#pragma once

#include <optional>
#include <string>

#include "estimator/base/bytes.hpp"

namespace stowage {

struct OutOfMemory {
  Bytes requested;  ///< as the program asked
  Bytes tried;      ///< what was asked of the driver: the "Tried to allocate" of the message
  Bytes total;      ///< of the device
  Bytes free;       ///< of the device, after all that could be released was
  Bytes process;    ///< held by this process: the allocator, the context, libraries
  std::optional<Bytes> allowed;  ///< by a memory fraction or limit
  Bytes allocated;
  Bytes reserved;
  bool refused_early = false;  ///< AllocatorSettings::refuse_early

  bool operator==(const OutOfMemory&) const = default;
};

/// PyTorch's message: "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity
/// of 1.95 GiB of which 13.69 MiB is free. ...", without its advice at the end.
[[nodiscard]] std::string pytorch_message(const OutOfMemory& failure);

/// As PyTorch prints sizes: "512 bytes", "1.50 KiB", "20.00 MiB", "1.95 GiB".
[[nodiscard]] std::string pytorch_size(Bytes bytes);

}  // namespace stowage
