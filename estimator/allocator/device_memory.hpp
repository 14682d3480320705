// DeviceMemory: a card's memory as its driver hands it out.
//
// The layer below every allocator. What is taken is counted in pages of 2 MiB, CUDA's granularity
// for anything of that size or more; addresses are virtual, so that physical memory never
// fragments and a request fails only where too few pages are left. Several consumers share one
// card: other processes, the CUDA context, libraries, one or more allocators. Each is a holder, so
// that what the card shows as used can be listed and adds up.
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
  Bytes peak;  ///< the most it has held at once
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

  /// Takes `bytes`, rounded up to pages; false, and nothing taken, where fewer are free.
  [[nodiscard]] bool take(HolderId holder, Bytes bytes);
  /// Precondition: the holder took a piece of this size and has it still.
  void give_back(HolderId holder, Bytes bytes);

  [[nodiscard]] Bytes total() const { return total_; }
  [[nodiscard]] Bytes free() const { return free_; }
  [[nodiscard]] Bytes used() const { return total_ - free_; }  ///< with what others use
  [[nodiscard]] Bytes peak_used() const { return peak_used_; }
  /// The least that would have been used with a request that was refused; none: none was.
  [[nodiscard]] std::optional<Bytes> least_refused() const { return least_refused_; }
  [[nodiscard]] Bytes in_use_by_others() const { return in_use_; }
  /// In the order in which they were added. What they hold and what others use sums to used().
  [[nodiscard]] std::span<const MemoryHolder> holders() const { return holders_; }

 private:
  Bytes total_, in_use_, free_, peak_used_;
  std::optional<Bytes> least_refused_;
  std::vector<MemoryHolder> holders_;
};

}  // namespace stowage
