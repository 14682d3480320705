// DeviceMemory: a card's memory as its driver hands it out.
//
// The layer below every allocator. Memory is counted in pages of 2 MiB, CUDA's granularity for
// requests of that size or more. Addresses are virtual, so physical memory never fragments, and a
// request fails only if too few pages are free. Several holders share one card: other processes,
// the CUDA context, libraries, and one or more allocators. Their sums add up to the card's used
// memory.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/id.hpp"

namespace stowage {

using HolderId = Id<struct HolderTag>;

inline constexpr Bytes device_page = 2_MiB;

struct MemoryHolder {
  std::string name;  ///< "other processes", "CUDA context", "PyTorch"
  Bytes held;
  Bytes peak;  ///< largest value of `held`
};

/// Not safe for concurrent use. Allocators keep references to it: it outlives them and stays put.
class DeviceMemory {
 public:
  /// `total`: what CUDA reports as the card's memory (not what nvidia-smi prints). `in_use`: what
  /// other processes hold of it throughout, at most `total`.
  explicit DeviceMemory(Bytes total, Bytes in_use = {});
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] HolderId add_holder(std::string name);

  /// Takes `bytes`, rounded up to pages. False: too few pages are free, and nothing was taken.
  [[nodiscard]] bool take(HolderId holder, Bytes bytes);
  /// Returns a piece of memory. Precondition: the holder took a piece of this size and still has
  /// it.
  void give_back(HolderId holder, Bytes bytes);

  [[nodiscard]] Bytes total() const { return total_; }
  [[nodiscard]] Bytes free() const { return free_; }
  [[nodiscard]] Bytes used() const { return total_ - free_; }  ///< including other processes
  [[nodiscard]] Bytes peak_used() const { return peak_used_; }
  /// The smallest usage that would have been needed for a refused request; none: no request was
  /// refused.
  [[nodiscard]] std::optional<Bytes> least_refused() const { return least_refused_; }
  [[nodiscard]] Bytes in_use_by_others() const { return in_use_; }
  /// In the order in which they were added. Their memory and in_use_by_others() sum up to used().
  [[nodiscard]] std::span<const MemoryHolder> holders() const { return holders_; }

 private:
  Bytes total_, in_use_, free_, peak_used_;
  std::optional<Bytes> least_refused_;
  std::vector<MemoryHolder> holders_;
};

}  // namespace stowage
