// A device whose lanes are threads of this machine: each does what it is given in its order, with
// delays drawn from a seed. Its kernels are the host's. What runs on it has not run on a GPU.
//
// It also watches: who touches what without having waited (race_book.hpp), memory given back while
// it is in use or not at all. Any of its calls can be made to fail, any wait of a lane to be lost.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu_probe/host/kernel_lane.hpp"
#include "gpu_probe/lanes/lane_device.hpp"
#include "tests/gpu_probe/lanes/race_book.hpp"

namespace stowage::test {

struct DeviceSettings {
  std::uint64_t seed = 0;  ///< of the delays
  int longest_delay = 50;  ///< microseconds, before one piece of work in eight; 0: none at all
  long failing_call = 0;   ///< of the calls that may fail, from 1; 0: none
  bool fails_on = false;   ///< so do all calls behind it: the device is lost
  long lost_wait = 0;      ///< of the waits of lanes, from 1; 0: none
  RunKernel run = run_host_kernel;
};

/// What has happened; it outlives the device.
struct DeviceDiary {
  std::mutex mutex;  ///< of all that follows; held by the tests' own readers too while lanes run
  long calls = 0, waits = 0, kernels = 0, copies = 0;
  std::string failed_call;       ///< the first
  std::string lost_wait;         ///< "compute for h2d"
  bool lost_was_needed = false;  ///< nothing else would have made the lane wait
  std::int64_t blocks = 0;       ///< of memory, not given back
  std::vector<std::string> misuses;
  RaceBook book;
};

/// The device, and how a kernel runs on the CPU's lane beside it.
struct ThreadedDevice {
  std::shared_ptr<DeviceDiary> diary;
  std::unique_ptr<LaneDevice> device;
  RunKernel run_on_cpu;
};
[[nodiscard]] ThreadedDevice threaded_device(const DeviceSettings& settings);

}  // namespace stowage::test
