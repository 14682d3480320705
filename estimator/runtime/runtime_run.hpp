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
  Bytes asked;       ///< the limit that its settings give it, whatever the card has
  Bytes limit;       ///< of that, what the card has beside the limits of the devices before it
  Bytes pool;        ///< held of the card
  Bytes used;        ///< the most in chunks handed out
};

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
  /// TensorFlow: the pools that it has on the card, by logical device; where it failed, those up to
  /// then, which may be none. nullopt: a runtime without pools.
  std::optional<std::vector<LogicalDevice>> pools;
  std::optional<AllocationFailure> failure;  ///< none: it ran
  PoolAdvice would_do;                       ///< TensorFlow's

  /// The replica that stands for all.
  [[nodiscard]] const ProcessReplay& process() const { return replicas.front(); }
  [[nodiscard]] ReservedBytes reserved() const;
  /// False: every step gives cached memory back to the driver and asks for it again. TensorFlow's
  /// pools give nothing back.
  [[nodiscard]] bool settles() const { return process().steady_reached || pools; }
};

}  // namespace stowage
