// ThreadedDevice: a device whose lanes are threads of this machine. Each runs its work in order,
// with delays drawn from a seed. Its kernels are the host's. Nothing here runs on a GPU.
//
// It also watches: memory that is used without waiting (race_book.hpp), memory that is freed while
// in use or never. Any call can be made to fail, and any wait of a lane to be lost.
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
  int longest_delay = 50;  ///< microseconds, before one job in eight; 0: no delays
  long failing_call = 0;   ///< its number among the calls that may fail, from 1; 0: none
  bool fails_on = false;   ///< all later calls fail too: the device is lost
  long lost_wait = 0;      ///< its number among the waits of lanes, from 1; 0: none
  RunKernel run = run_host_kernel;
};

/// What has happened on a device. Outlives the device.
struct DeviceDiary {
  std::mutex mutex;  ///< guards all that follows; tests hold it too while lanes run
  long calls = 0, waits = 0, kernels = 0, copies = 0;
  std::string failed_call;       ///< the name of the first
  std::string lost_wait;         ///< "compute for h2d"
  bool lost_was_needed = false;  ///< whether nothing else made the lane wait
  std::int64_t blocks = 0;       ///< of memory that were not freed
  std::vector<std::string> misuses;
  RaceBook book;
};

/// A device, and the function that runs kernels on the CPU's lane beside it.
struct ThreadedDevice {
  std::shared_ptr<DeviceDiary> diary;
  std::unique_ptr<LaneDevice> device;
  RunKernel run_on_cpu;
};
[[nodiscard]] ThreadedDevice threaded_device(const DeviceSettings& settings);

}  // namespace stowage::test
