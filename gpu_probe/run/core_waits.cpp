#include "gpu_probe/run/core_waits.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>

namespace stowage {
namespace {

std::optional<double> waited_so_far() {
  std::ifstream file("/proc/thread-self/schedstat");
  return seconds_waited({std::istreambuf_iterator<char>(file), {}});
}

}  // namespace

std::optional<double> seconds_waited(const std::string& schedstat) {
  std::istringstream words(schedstat);
  std::uint64_t ran = 0, waited = 0, times = 0;
  if (!(words >> ran >> waited >> times)) return std::nullopt;
  return static_cast<double>(waited) / 1e9;
}

CoreWaits::CoreWaits() : begin_(std::chrono::steady_clock::now()), waited_(waited_so_far()) {}

std::optional<double> CoreWaits::share() const {
  const std::optional<double> now = waited_so_far();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
  if (!waited_ || !now || passed.count() <= 0) return std::nullopt;
  return std::max(0.0, *now - *waited_) / passed.count();
}

}  // namespace stowage
