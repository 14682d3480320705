#include "estimator/allocator/device_memory.hpp"

#include <doctest/doctest.h>

namespace stowage {

TEST_CASE("Device memory is taken in pages of 2 MiB") {
  DeviceMemory device(100_MiB);
  const HolderId context = device.add_holder("CUDA context");
  CHECK(device.take(context, 1_B));
  CHECK(device.free() == 98_MiB);
  CHECK(device.take(context, 3_MiB));
  CHECK(device.free() == 94_MiB);
  CHECK(device.take(context, 4_MiB));
  CHECK(device.free() == 90_MiB);
  device.give_back(context, 3_MiB);
  CHECK(device.free() == 94_MiB);
  CHECK(device.used() == 6_MiB);
  CHECK(device.peak_used() == 10_MiB);
  CHECK(device.holders()[0].held == 6_MiB);
  CHECK(device.holders()[0].peak == 10_MiB);
}

TEST_CASE("Several holders share a card, and the last page may be a part that no one gets") {
  // 11 MiB, of which others use 3 MiB: four pages of 2 MiB are left.
  DeviceMemory device(11_MiB, 3_MiB);
  const HolderId context = device.add_holder("CUDA context");
  const HolderId torch = device.add_holder("PyTorch");
  CHECK(device.take(context, 4_MiB));
  CHECK_FALSE(device.take(torch, 5_MiB));
  CHECK(device.free() == 4_MiB);
  CHECK(device.least_refused() == 13_MiB);
  CHECK(device.take(torch, 4_MiB));
  CHECK_FALSE(device.take(torch, 1_B));
  CHECK(device.least_refused() == 13_MiB);

  Bytes sum = device.in_use_by_others();
  for (const MemoryHolder& holder : device.holders()) sum += holder.held;
  CHECK(sum == device.used());
  CHECK(device.used() == 11_MiB);
  CHECK(device.holders()[1].name == "PyTorch");
}

TEST_CASE("Odd totals leave less than a page") {
  DeviceMemory device(5_MiB);
  const HolderId holder = device.add_holder("libraries");
  CHECK(device.take(holder, 4_MiB));
  CHECK_FALSE(device.take(holder, 1_B));
  CHECK(device.free() == 1_MiB);
}

}  // namespace stowage
