#include "gpu_probe/run/core_waits.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace stowage {
namespace {

/// Of all threads that there are; one that has ended is not in it any more.
std::optional<double> waited_so_far() {
  std::optional<double> sum;
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream file(thread.path() / "schedstat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (const auto waited = seconds_waited(text)) sum = sum.value_or(0) + *waited;
  }
  return sum;
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
