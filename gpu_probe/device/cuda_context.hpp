// CudaContext: the primary context of one device, through the driver's interface, with memory and
// copies. Failures are thrown as LibraryFailure.
#pragma once

#include <cstddef>
#include <string>

#include "gpu_probe/driver/cuda_functions.hpp"

namespace stowage {

class CudaContext {
 public:
  /// Creates the context of the device at a PCI address ("0000:65:00.0") and makes it current.
  CudaContext(const std::string& library, const std::string& pci_bus_id);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  [[nodiscard]] int ordinal() const { return device_; }
  [[nodiscard]] std::size_t total_bytes() const;
  [[nodiscard]] bool loads_lazily() const;

  void fill_with_zeros(DevicePointer pointer, std::size_t bytes) const;
  void copy_to_device(DevicePointer to, const void* from, std::size_t bytes) const;
  void copy_to_host(void* to, DevicePointer from, std::size_t bytes) const;
  void copy_on_device(DevicePointer to, DevicePointer from, std::size_t bytes) const;
  void wait() const;

 private:
  friend class ContextMemory;
  friend class PinnedMemory;
  CudaDriver driver_;
  int device_ = 0;
};

/// Owns memory of the device. The context outlives it.
class ContextMemory {
 public:
  ContextMemory(const CudaContext& context, std::size_t bytes);
  ~ContextMemory();
  ContextMemory(const ContextMemory&) = delete;
  ContextMemory& operator=(const ContextMemory&) = delete;
  [[nodiscard]] DevicePointer begin() const { return begin_; }

 private:
  const CudaContext& context_;
  DevicePointer begin_ = 0;
};

/// Owns pinned memory of the host. The context outlives it.
class PinnedMemory {
 public:
  PinnedMemory(const CudaContext& context, std::size_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  [[nodiscard]] void* begin() const { return begin_; }

 private:
  const CudaContext& context_;
  void* begin_ = nullptr;
};

}  // namespace stowage
