// CoreWaits: how much other programs used this machine's cores while something ran. It is the time
// in which the calling thread, which runs or queues the kernels, could have run and had to wait for
// a core. Threads that help it do not count: idle ones spin, and wait for each other.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace stowage {

/// Measures from its construction to share().
class CoreWaits {
 public:
  CoreWaits();
  /// The part of that time spent waiting, from 0 to 1. Nullopt: the system does not tell (no
  /// /proc/thread-self/schedstat). Must be called by the thread that constructed the object.
  [[nodiscard]] std::optional<double> share() const;

 private:
  std::chrono::steady_clock::time_point begin_;
  std::optional<double> waited_;
};

/// The seconds that a thread has waited, from the text of its schedstat: "RAN WAITED TIMES", in
/// nanoseconds. Exposed for tests.
[[nodiscard]] std::optional<double> seconds_waited(const std::string& schedstat);

}  // namespace stowage
