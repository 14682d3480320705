#include "estimator/allocator/out_of_memory.hpp"

#include <fmt/format.h>

namespace stowage {

std::string pytorch_size(Bytes bytes) {
  const auto count = static_cast<double>(bytes.count());
  if (bytes <= 1_KiB) return fmt::format("{} bytes", bytes.count());
  if (bytes <= 1_MiB) return fmt::format("{:.2f} KiB", count / 1024);
  if (bytes <= 1_GiB) return fmt::format("{:.2f} MiB", count / (1024 * 1024));
  return fmt::format("{:.2f} GiB", count / (1024 * 1024 * 1024));
}

std::string pytorch_message(const OutOfMemory& failure) {
  if (failure.refused_early) {
    return fmt::format(
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
        "per_process_memory_fraction limit. Requested size: {}",
        pytorch_size(failure.requested));
  }
  std::string allowed;
  if (failure.allowed) allowed = pytorch_size(*failure.allowed) + " allowed; ";
  return fmt::format(
      "CUDA out of memory. Tried to allocate {}. GPU 0 has a total capacity of {} of which {} is "
      "free. Including non-PyTorch memory, this process has {} memory in use. {}Of the allocated "
      "memory {} is allocated by PyTorch, and {} is reserved by PyTorch but unallocated.",
      pytorch_size(failure.tried), pytorch_size(failure.total), pytorch_size(failure.free),
      pytorch_size(failure.process), allowed, pytorch_size(failure.allocated),
      pytorch_size(failure.reserved - failure.allocated));
}

}  // namespace stowage
