#include "estimator/allocator/tensorflow_memory.hpp"

#include <doctest/doctest.h>

namespace stowage {

namespace {

std::vector<Bytes> limits(const TensorFlowMemory& memory, Bytes total, Bytes in_use, int major) {
  const DeviceMemory device(total, in_use);
  return tensorflow_limits(memory, device, major);
}

}  // namespace

TEST_CASE("What TensorFlow leaves free, by what is free and by compute capability") {
  CHECK(tensorflow_reserve(2_GiB - 1_B, 9) == 225_MiB);
  CHECK(tensorflow_reserve(2_GiB, 5) == 500_MiB);
  CHECK(tensorflow_reserve(2_GiB, 6) == 500_MiB);
  CHECK(tensorflow_reserve(16_GiB, 7) == 1050_MiB);
  CHECK(tensorflow_reserve(40_GiB, 8) == 1536_MiB);
  CHECK(tensorflow_reserve(80_GiB, 9) == 1800_MiB);
  CHECK(tensorflow_reserve(180_GiB, 12) == 1800_MiB);
}

TEST_CASE("The whole card by default: what is free, less the reserve") {
  CHECK(limits({}, 2002_MiB, 329_MiB, 5) == std::vector{1448_MiB});
  CHECK(limits({}, 40_GiB, 400_MiB, 8) == std::vector{40_GiB - 400_MiB - 1536_MiB});
  // Less free than the reserve: all of it.
  CHECK(limits({}, 2_GiB, 1900_MiB, 8) == std::vector{148_MiB});
}

TEST_CASE("A fraction is of the total, whatever is free") {
  TensorFlowMemory memory;
  memory.per_process_fraction = 0.25;
  CHECK(limits(memory, 2000_MiB, 1800_MiB, 5) == std::vector{500_MiB});
}

TEST_CASE("A reserve of one's own, fraction or not") {
  TensorFlowMemory memory;
  memory.system_reserve = 100_MiB;
  CHECK(limits(memory, 2_GiB, 48_MiB, 5) == std::vector{1900_MiB});
  memory.per_process_fraction = 0.5;
  CHECK(limits(memory, 2_GiB, 48_MiB, 5) == std::vector{1900_MiB});
  memory.system_reserve = 2001_MiB;
  CHECK(limits(memory, 2_GiB, 48_MiB, 5) == std::vector{1_GiB});
}

TEST_CASE("The pool is full and the libraries come too late") {
  // A card of 2,002 MiB with a desktop of 329 MiB on it: the pool takes 1,448 of 1,673 MiB at the
  // first tensor, and 225 are left for whatever the libraries still want.
  DeviceMemory device(2002_MiB, 329_MiB);
  const auto allocators = tensorflow_allocators({}, device, 5);
  REQUIRE(allocators.size() == 1);
  CHECK(device.free() == 1673_MiB);
  REQUIRE(allocators[0]->allocate(1_B).has_value());
  CHECK(allocators[0]->statistics().reserved.current == 1448_MiB);
  CHECK(device.free() == 225_MiB);
  const HolderId libraries = device.add_holder("cuBLAS and cuDNN");
  CHECK_FALSE(device.take(libraries, 300_MiB));
  CHECK(device.take(libraries, 200_MiB));
}

TEST_CASE("Several logical devices on one card") {
  TensorFlowMemory memory;
  memory.logical_devices = {512_MiB, 512_MiB, 1_GiB};
  DeviceMemory device(2_GiB);
  const auto allocators = tensorflow_allocators(memory, device, 8);
  REQUIRE(allocators.size() == 3);
  REQUIRE(allocators[0]->allocate(100_MiB).has_value());
  CHECK(device.free() == 1536_MiB);
  REQUIRE(allocators[2]->allocate(100_MiB).has_value());
  CHECK(device.free() == 512_MiB);
  // One's pool is not for another.
  CHECK_FALSE(allocators[0]->allocate(450_MiB).has_value());
  REQUIRE(allocators[1]->allocate(512_MiB).has_value());
  CHECK(device.free() == 0_B);
  CHECK(device.holders()[2].name == "TensorFlow GPU:2");
  CHECK(device.holders()[2].held == 1_GiB);
}

TEST_CASE("Logical devices that together exceed the card: the last gets what a tenth less leaves") {
  TensorFlowMemory memory;
  memory.logical_devices = {600_MiB, 600_MiB};
  DeviceMemory device(1_GiB);
  const auto allocators = tensorflow_allocators(memory, device, 8);
  REQUIRE(allocators[0]->allocate(1_B).has_value());
  REQUIRE(allocators[1]->allocate(1_B).has_value());
  // 600, 540, 486, 437.4, 393.66 MiB; 424 are free.
  CHECK(allocators[1]->statistics().reserved.current == 412782592_B);
  CHECK(device.free() == 424_MiB - 394_MiB);
}

TEST_CASE("With growth nothing is taken that is not needed") {
  TensorFlowMemory memory;
  memory.allow_growth = true;
  DeviceMemory device(2002_MiB, 329_MiB);
  const auto allocators = tensorflow_allocators(memory, device, 5);
  CHECK(allocators[0]->memory_limit() == 1448_MiB);
  REQUIRE(allocators[0]->allocate(1_B).has_value());
  CHECK(device.free() == 1671_MiB);
}

}  // namespace stowage
