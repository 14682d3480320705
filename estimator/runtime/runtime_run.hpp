// RuntimeRun: what becomes of a step when a runtime runs it on a card (RuntimeProcess::run).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/card/card.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "estimator/runtime/process_overhead.hpp"
#include "estimator/runtime/process_replay.hpp"
#include "estimator/runtime/runtime_buffers.hpp"

namespace stowage {

/// Unlimited room, to find out what a step would take: more than 64 devices hold of steps of
/// largest_memory, and little enough that an allocator may reserve 9/8 of it for each of its two
/// pools (expandable_segment.cpp) within 64 bits.
inline constexpr Bytes unlimited_memory{std::int64_t{3} << 60};

/// A step that was lowered for the settings' runtime, and the card that it is to run on. Card and
/// settings outlive it.
struct StepOnCard {
  StepOnCard(const SizedStep& step, const Card& card, const CheckSettings& settings);

  SizedStep step;  ///< with_sum_workspaces of the card
  const Card& card;
  const CheckSettings& settings;
  Bytes limit;  ///< allocator_limit()
  std::vector<Touches> touches;
  std::vector<RuntimeBuffer> buffers;  ///< runtime_buffers()
};

/// Where and how the runtime fails.
struct AllocationFailure {
  ProcessReplay::Failure at;
  std::string node;                           ///< its name; "" while parameters are loaded
  std::string message;                        ///< in the runtime's words
  bool expandable_segments_would_do = false;  ///< with expandable_segments:True it completes
};

/// A pool of TensorFlow's and the replica in it.
struct LogicalDevice {
  std::string name;  ///< "GPU:0"
  Bytes limit;
  Bytes pool;  ///< held of the card
  Bytes used;  ///< the most in chunks handed out
};

[[nodiscard]] std::vector<LogicalDevice> logical_devices(const std::vector<ProcessReplay>& replicas,
                                                         const std::vector<Bytes>& limits);

/// What the runtime holds of the driver, all devices of the card together.
struct ReservedBytes {
  Bytes loaded, first_step, most;
};

/// Settings of TensorFlow's pools under which a step would run that does not. Each alone is enough.
struct PoolAdvice {
  std::optional<Bytes> limit;  ///< of each pool
  bool growth = false;         ///< pools that grow on demand

  [[nodiscard]] bool empty() const { return !limit && !growth; }
};

/// The figures are those of the run that completed or, where it failed, of a run with unlimited
/// memory.
struct RuntimeRun {
  /// TensorFlow: by logical device, all alike. Other runtimes have one; never empty.
  std::vector<ProcessReplay> replicas;
  std::vector<Bytes> pool_limits;  ///< TensorFlow: by logical device; else none
  /// TensorFlow, where it failed: the card's own pools up to then. Empty list: it failed before
  /// any.
  std::optional<std::vector<LogicalDevice>> failed_pools;
  std::optional<AllocationFailure> failure;  ///< none: it ran
  PoolAdvice would_do;                       ///< TensorFlow's

  /// The replica that stands for all.
  [[nodiscard]] const ProcessReplay& process() const { return replicas.front(); }
  [[nodiscard]] ReservedBytes reserved() const;
  /// False: every step gives cached memory back to the driver and asks for it again. TensorFlow's
  /// pools give nothing back.
  [[nodiscard]] bool settles() const { return process().steady_reached || !pool_limits.empty(); }
  /// TensorFlow's, with the figures' own pools; none of other runtimes.
  [[nodiscard]] std::vector<LogicalDevice> logical_devices() const;
  /// As logical_devices(), but where it failed the pools that the card has room for.
  [[nodiscard]] std::vector<LogicalDevice> pools_on_card() const;
};

}  // namespace stowage
