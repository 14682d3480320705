// Deliberate mistakes in the lanes: a lost wait, a copy that runs early, memory that is freed while
// it is in use. Each must be found, whatever the delays. Not under ThreadSanitizer, which would
// report them itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "gpu_probe/lanes/laned_backend.hpp"
#include "gpu_probe/run/executor.hpp"
#include "tests/gpu_probe/lanes/plain_kernels.hpp"
#include "tests/gpu_probe/lanes/threaded_device.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"
#include "tests/gpu_probe/run/wrapped_backend.hpp"

namespace stowage::test {
namespace {

constexpr ExecutionOptions clean{.clean = true};

/// Drops the tickets that the n-th copy, or the n-th wait of the compute lane, is to wait for.
class EarlyBackend final : public WrappedBackend {
 public:
  EarlyBackend(std::unique_ptr<Backend> inner, long copy, long wait)
      : WrappedBackend(std::move(inner)), copy_(copy), wait_(wait) {}

  [[nodiscard]] bool was_hasty() const { return hasty_; }

  Result<Ticket> copy(Direction direction, std::byte* gpu, std::byte* cpu, Bytes bytes,
                      std::span<const Ticket> after) override {
    const bool skips = ++copies_ == copy_ && !after.empty();
    hasty_ = hasty_ || skips;
    return WrappedBackend::copy(direction, gpu, cpu, bytes,
                                skips ? std::span<const Ticket>{} : after);
  }
  Result<void> compute_waits_for(std::span<const Ticket> tickets) override {
    const bool skips = ++waits_ == wait_ && !tickets.empty();
    hasty_ = hasty_ || skips;
    return skips ? Result<void>{} : WrappedBackend::compute_waits_for(tickets);
  }

 private:
  long copy_, wait_;
  long copies_ = 0, waits_ = 0;
  bool hasty_ = false;
};

}  // namespace

TEST_SUITE("lanes") {
  TEST_CASE("a wait of a lane that is lost is found") {
    if (!has_convolutions()) return;
    const StepGraph graph = step_of(mlp, sgd_momentum());
    std::map<std::string, int> found;
    int lost = 0, needed = 0, races = 0;
    for (const std::uint64_t seed : {11U, 12U, 13U}) {
      const Plan plan = random_plan(graph, 2, seed, {.on_cpu = 0.3});
      long waits = 1;
      for (long n = 1; n <= waits; ++n) {
        CAPTURE(n);
        auto made = threaded_device({.seed = seed, .lost_wait = n});
        {
          const auto backend = laned_backend(std::move(made.device), made.run_on_cpu);
          REQUIRE(execute(plan, *backend, clean).has_value());
        }
        waits = made.diary->waits;
        ++lost;
        needed += made.diary->lost_was_needed ? 1 : 0;
        if (made.diary->book.races().empty()) continue;
        CHECK(made.diary->lost_was_needed);
        ++races;
        ++found[made.diary->lost_wait];
      }
    }
    // The compute lane uses memory that the CPU has used only through a copy, which itself waits
    // for the CPU.
    for (const std::string kind :
         {"compute for an event", "h2d for an event", "h2d for the CPU", "d2h for an event"}) {
      CAPTURE(kind);
      CHECK(found[kind] > 0);
    }
    MESSAGE(lost, " waits lost, ", needed, " of them needed, ", races, " races found");
  }

  TEST_CASE("a copy that does not wait, and a lane that goes on too early, are found") {
    if (!has_convolutions()) return;
    const StepGraph graph = step_of(mlp, sgd_momentum());
    const Plan plan = random_plan(graph, 2, 11);
    for (const bool copies : {true, false}) {
      int hasty = 0, found = 0;
      for (long n = 1; n <= 60; ++n) {
        auto made = threaded_device({.seed = 11});
        {
          EarlyBackend backend(laned_backend(std::move(made.device), made.run_on_cpu),
                               copies ? n : 0, copies ? 0 : n);
          REQUIRE(execute(plan, backend, clean).has_value());
          hasty += backend.was_hasty() ? 1 : 0;
        }
        found += made.diary->book.races().empty() ? 0 : 1;
      }
      CHECK(hasty >= 5);
      CHECK(found > 0);
      const std::string what = copies ? " copies moved early, " : " waits left out, ";
      MESSAGE(hasty, what, found, " found");
    }
  }

  TEST_CASE("memory that is given back while lanes use it is found") {
    auto made = threaded_device({.seed = 1, .longest_delay = 2000});
    const auto gpu = made.device->allocate(1_MiB), host = made.device->allocate_host(1_MiB, 1_MiB);
    REQUIRE(gpu.has_value());
    REQUIRE(host.has_value());
    for (int i = 0; i < 8; ++i) {
      REQUIRE(made.device->copy(Lane::h2d, *gpu, *host, 1_KiB).has_value());
    }
    // The work there does not use the block that is freed.
    const auto other = made.device->allocate_host(1_KiB, 1_KiB);
    REQUIRE(other.has_value());
    made.device->free_host(*other);
    REQUIRE(made.device->synchronize().has_value());
    CHECK(made.diary->misuses.size() == 1);
    made.device->free(*gpu);
    made.device->free_host(*host);
    made.device->free_host(*host);
    CHECK(made.diary->misuses.size() == 2);
    CHECK(made.diary->misuses.back() == "what is not there is given back");
  }

  TEST_CASE("the book finds what is out of order, and only that") {
    RaceBook book;
    std::array<std::byte, 64> bytes{};
    std::byte* const at = bytes.data();
    book.access(Actor::compute, at, 32, true, "a");
    const VectorClock after_a = book.clock(Actor::compute);
    book.access(Actor::h2d, at + 32, 32, true, "b");
    CHECK(book.races().empty());
    book.access(Actor::d2h, at + 16, 8, false, "c");
    CHECK(book.races() == std::vector<std::string>{"c beside a"});
    CHECK(book.acquire(Actor::cpu, after_a));
    CHECK(!book.acquire(Actor::cpu, after_a));
    book.access(Actor::cpu, at, 16, false, "d");
    book.access(Actor::compute, at, 8, false, "e");
    CHECK(book.races().size() == 1);
    book.access(Actor::compute, at, 8, true, "f");
    CHECK(book.races().back() == "f beside d");
    book.forget(at, 64);
    book.access(Actor::host, at, 64, true, "g");
    CHECK(book.races().size() == 2);
  }
}

}  // namespace stowage::test
