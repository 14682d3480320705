// A CUDA device as lanes, on a pretended driver whose device is the host's memory. It tests which
// calls are made, in what order, and what happens when one fails. It says nothing about a GPU.
#include "gpu_probe/cuda/cuda_lanes.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "tests/gpu_probe/device/fake_driver/fake_lanes.hpp"

namespace stowage::test {
namespace {

FakeLanes& fake_lanes() {
  static const SharedLibrary library(STOWAGE_FAKE_LANES);
  static FakeLanesEntry entry = nullptr;
  if (entry == nullptr) REQUIRE(library.bind("fakeLanes", entry));
  return *entry();
}

void begin(long fail_at = 0, bool sticks = false) {
  FakeLanes& state = fake_lanes();
  REQUIRE(state.live == 0);
  state = FakeLanes{};
  state.fail_at = fail_at;
  state.sticks = sticks;
}

class CountingKernels final : public GpuKernels {
 public:
  explicit CountingKernels(int& calls) : calls_(calls) {}
  [[nodiscard]] Result<void> launch(const KernelCall& call, void* stream) override {
    CHECK(call.kernel == Kernel::relu_forward);
    CHECK(stream != nullptr);
    ++calls_;
    return {};
  }

 private:
  int& calls_;
};

/// Uses every function of lanes once. Returns how many kernels were launched.
Result<int> use_everything() {
  int kernels = 0;
  auto lanes = open_cuda_lanes(STOWAGE_FAKE_LANES, 0, [&](const OpenedDevice& device) {
    CHECK(device.name == "Fake");
    CHECK(device.compute_major == 8);
    CHECK(device.compute_minor == 6);
    return Result<std::unique_ptr<GpuKernels>>(std::make_unique<CountingKernels>(kernels));
  });
  if (!lanes) return tl::unexpected(lanes.error());
  LaneDevice& device = **lanes;
  CHECK(device.name() == "cuda: Fake");
  const auto gpu = device.allocate(Bytes(16)), host = device.allocate_host(Bytes(16), Bytes(16));
  if (!gpu) return tl::unexpected(gpu.error());
  if (!host) return tl::unexpected(host.error());
  const auto freed = [&](const Result<void>& done) -> Result<int> {
    device.free(*gpu);
    device.free_host(*host);
    if (!done) return tl::unexpected(done.error());
    return kernels;
  };
  const auto work = [&]() -> Result<void> {
    std::memset(*host, 3, 16);
    const auto start = device.record(Lane::h2d);
    if (!start) return tl::unexpected(start.error());
    if (auto ok = device.copy(Lane::h2d, *gpu, *host, Bytes(16)); !ok) return ok;
    const auto uploaded = device.record(Lane::h2d);
    if (!uploaded) return tl::unexpected(uploaded.error());
    if (auto ok = device.wait(Lane::compute, *uploaded); !ok) return ok;
    if (auto ok = device.launch({.kernel = Kernel::relu_forward}); !ok) return ok;
    if (auto ok = device.fill(Lane::compute, *gpu, std::byte{5}, Bytes(8)); !ok) return ok;
    device.signal(7);
    if (auto ok = device.wait_for_signal(Lane::d2h, 7); !ok) return ok;
    if (auto ok = device.copy(Lane::d2h, *host, *gpu, Bytes(16)); !ok) return ok;
    if (auto ok = device.wait_for(*uploaded); !ok) return ok;
    if (auto ok = device.synchronize(); !ok) return ok;
    const auto seconds = device.seconds_between(*start, *uploaded);
    if (!seconds) return tl::unexpected(seconds.error());
    CHECK(*seconds >= 0);
    const std::array<unsigned char, 16> expected{5, 5, 5, 5, 5, 5, 5, 5, 3, 3, 3, 3, 3, 3, 3, 3};
    CHECK(std::memcmp(*host, expected.data(), 16) == 0);
    return device.forget_events();
  };
  return freed(work());
}

}  // namespace

TEST_CASE("a CUDA device as lanes does what it is asked, and leaves nothing behind") {
  begin();
  const auto kernels = use_everything();
  REQUIRE(kernels.has_value());
  CHECK(*kernels == 1);
  CHECK(fake_lanes().live == 0);
  CHECK(fake_lanes().wrong_calls == 0);
}

TEST_CASE("whatever call of the driver fails is named, and all is freed") {
  for (const bool sticks : {false, true}) {
    int named = 0;
    for (long n = 1;; ++n) {
      CAPTURE(n);
      CAPTURE(sticks);
      begin(n, sticks);
      const auto kernels = use_everything();
      CHECK(fake_lanes().live == 0);
      CHECK(fake_lanes().wrong_calls == 0);
      const bool reached = fake_lanes().calls >= n;
      if (!reached) break;
      // Calls that free memory may fail without an error.
      if (kernels) continue;
      ++named;
      const std::string& message = kernels.error().front().message;
      CHECK(message.starts_with("cu"));
      CHECK(message.find("fails with error 719 (unspecified launch failure)") != std::string::npos);
    }
    CHECK(named >= 20);
  }
  begin();
}

TEST_CASE("the device's free memory is the driver's, what is in use NVML's") {
  begin();
  int kernels = 0;
  const MakeGpuKernels counting = [&](const OpenedDevice&) {
    return Result<std::unique_ptr<GpuKernels>>(std::make_unique<CountingKernels>(kernels));
  };
  for (const char* nvml : {STOWAGE_FAKE_GPU, "libno-such-nvml.so.1"}) {
    auto lanes = open_cuda_lanes(STOWAGE_FAKE_LANES, 0, counting, nvml);
    REQUIRE(lanes.has_value());
    const auto before = (*lanes)->memory();
    REQUIRE(before.has_value());
    REQUIRE(before->has_value());
    CHECK((*before)->free == 1_GiB);
    CHECK((*before)->total == 1_GiB);
    CHECK((*before)->nvml_used.has_value() == (nvml == std::string(STOWAGE_FAKE_GPU)));
    const auto block = (*lanes)->allocate(3_MiB);
    REQUIRE(block.has_value());
    CHECK((*lanes)->memory().value()->free == 1_GiB - 3_MiB);
    (*lanes)->free(*block);
    CHECK((*lanes)->memory().value()->free == 1_GiB);
    CHECK((*lanes)->remarks().empty());
  }
  CHECK(fake_lanes().live == 0);
}

TEST_CASE("of the host's memory what copies reach is pinned, and nothing else") {
  begin();
  int kernels = 0;
  auto lanes = open_cuda_lanes(STOWAGE_FAKE_LANES, 0, [&](const OpenedDevice&) {
    return Result<std::unique_ptr<GpuKernels>>(std::make_unique<CountingKernels>(kernels));
  });
  REQUIRE(lanes.has_value());
  const auto both = (*lanes)->allocate_host(1_MiB, 8_KiB);
  REQUIRE(both.has_value());
  CHECK(fake_lanes().pinned == 8 << 10);
  (*lanes)->free_host(*both);
  fake_lanes().pinned = 0;
  const auto pageable = (*lanes)->allocate_host(1_MiB, 0_B);
  REQUIRE(pageable.has_value());
  CHECK(fake_lanes().pinned == 0);
  (*lanes)->free_host(*pageable);
}

TEST_CASE("a device that CUDA does not show, and a driver that is none, are refused") {
  begin();
  const MakeGpuKernels none = [](const OpenedDevice&) -> Result<std::unique_ptr<GpuKernels>> {
    return failure("no kernels");
  };
  const auto refused = [&](const char* library, int ordinal) {
    const auto lanes = open_cuda_lanes(library, ordinal, none);
    return lanes ? std::string() : lanes.error().front().message;
  };
  CHECK(refused(STOWAGE_FAKE_LANES, 3).starts_with("cuDeviceGet fails with error 101"));
  CHECK(refused(STOWAGE_FAKE_LANES, 0) == "no kernels");
  CHECK(refused(STOWAGE_STALE_KERNELS, 0) == "the CUDA driver is too old: it lacks cuInit");
  CHECK(refused("libno-such-driver.so.1", 0).starts_with("there is no CUDA driver: "));
  CHECK(fake_lanes().live == 0);
}

}  // namespace stowage::test
