// How much others wanted this machine's cores while something ran: the time that this process's
// threads could have run and had to wait.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace stowage {

/// From its construction to share().
class CoreWaits {
 public:
  CoreWaits();
  /// Of the time since then, over all threads together, so that it may be above 1; nullopt: the
  /// system does not say (no /proc/self/task/*/schedstat).
  [[nodiscard]] std::optional<double> share() const;

 private:
  std::chrono::steady_clock::time_point begin_;
  std::optional<double> waited_;
};

/// Seconds waited by a thread, of its schedstat: "RAN WAITED TIMES", in nanoseconds. Exposed for
/// tests.
[[nodiscard]] std::optional<double> seconds_waited(const std::string& schedstat);

}  // namespace stowage
