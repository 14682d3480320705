// RaceBook: who touched which bytes, and what each had waited for before.
//
// Vector clocks, as race detectors keep them: two accesses of which one writes are in order only
// where a chain of waits leads from one to the other, however the clock on the wall had them. So a
// wait that is missing is found whatever the delays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stowage::test {

/// Whoever acts beside others: three lanes of a device, the CPU's lane, the host's own thread.
enum class Actor : std::uint8_t { compute, h2d, d2h, cpu, host };
inline constexpr std::size_t actor_count = 5;

using VectorClock = std::array<std::uint64_t, actor_count>;

/// Not thread-safe.
class RaceBook {
 public:
  [[nodiscard]] const VectorClock& clock(Actor actor) const { return clocks_[index(actor)]; }
  /// The actor has waited for what had this clock. Whether that told it anything new.
  bool acquire(Actor actor, const VectorClock& clock);
  void access(Actor actor, const std::byte* begin, std::int64_t bytes, bool writes,
              const std::string& what);
  /// Memory is another's from here on.
  void forget(const std::byte* begin, std::int64_t bytes);

  [[nodiscard]] const std::vector<std::string>& races() const { return races_; }

 private:
  struct Access {
    Actor actor;
    std::uint64_t time;
    const std::byte* begin;
    const std::byte* end;
    bool writes;
    std::string what;
  };
  static std::size_t index(Actor actor) { return static_cast<std::size_t>(actor); }

  std::array<VectorClock, actor_count> clocks_{};
  std::vector<Access> accesses_;
  std::vector<std::string> races_;
};

}  // namespace stowage::test
