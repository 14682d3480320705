// RaceBook: records who accessed which bytes, and what each had waited for before.
//
// It keeps vector clocks, as race detectors do: two accesses, one of them a write, are in order
// only if a chain of waits leads from one to the other, whatever their real times were. So a
// missing wait is found with any delays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stowage::test {

/// Those that work at the same time: three lanes of a device, the CPU's lane, the host's own
/// thread.
enum class Actor : std::uint8_t { compute, h2d, d2h, cpu, host };
inline constexpr std::size_t actor_count = 5;

using VectorClock = std::array<std::uint64_t, actor_count>;

/// Not thread-safe.
class RaceBook {
 public:
  [[nodiscard]] const VectorClock& clock(Actor actor) const { return clocks_[index(actor)]; }
  /// The actor has waited for work with this clock. Returns whether it learnt anything new.
  bool acquire(Actor actor, const VectorClock& clock);
  void access(Actor actor, const std::byte* begin, std::int64_t bytes, bool writes,
              const std::string& what);
  /// Forgets accesses to memory that was freed.
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
