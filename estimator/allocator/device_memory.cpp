#include "estimator/allocator/device_memory.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace stowage {

DeviceMemory::DeviceMemory(Bytes total, Bytes in_use)
    : total_(total), in_use_(in_use), free_(total - in_use), peak_used_(in_use) {
  assert(in_use >= 0_B && free_ >= 0_B);
}

HolderId DeviceMemory::add_holder(std::string name) {
  holders_.push_back({std::move(name), {}, {}});
  return HolderId::of(holders_.size() - 1);
}

bool DeviceMemory::take(HolderId holder, Bytes bytes) {
  const Bytes pages = round_up(bytes, device_page);
  if (pages > free_) {
    const Bytes refused = used() + pages;
    least_refused_ = least_refused_ ? std::min(*least_refused_, refused) : refused;
    return false;
  }
  free_ -= pages;
  peak_used_ = std::max(peak_used_, used());
  MemoryHolder& row = holders_[holder.index()];
  row.held += pages;
  row.peak = std::max(row.peak, row.held);
  return true;
}

void DeviceMemory::give_back(HolderId holder, Bytes bytes) {
  const Bytes pages = round_up(bytes, device_page);
  MemoryHolder& row = holders_[holder.index()];
  assert(row.held >= pages);
  row.held -= pages;
  free_ += pages;
}

}  // namespace stowage
