// How much others wanted this machine's cores while something ran: the time that the calling
// thread, which runs the kernels or queues them, could have run and had to wait. The threads that
// help it are not counted: idle ones spin, and wait for each other.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace stowage {

/// From its construction to share().
class CoreWaits {
 public:
  CoreWaits();
  /// Of the time since then, from 0 to 1; nullopt: the system does not say (no
  /// /proc/thread-self/schedstat). To be called by the same thread.
  [[nodiscard]] std::optional<double> share() const;

 private:
  std::chrono::steady_clock::time_point begin_;
  std::optional<double> waited_;
};

/// Seconds waited by a thread, of its schedstat: "RAN WAITED TIMES", in nanoseconds. Exposed for
/// tests.
[[nodiscard]] std::optional<double> seconds_waited(const std::string& schedstat);

}  // namespace stowage
