// A process that trains or infers with TensorFlow: its pools beside the libraries on the same card.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "estimator/runtime/runtime_process.hpp"
#include "estimator/runtime/tensorflow_replay.hpp"

namespace stowage {

namespace {

constexpr std::int64_t mebibyte = 1 << 20;

/// Beside pools of unlimited_memory together: the context, the libraries, and what is in use.
constexpr Bytes outside_pools{std::int64_t{1} << 60};

Bytes whole_mebibytes(Bytes bytes) { return Bytes(bytes.count() / mebibyte * mebibyte); }

/// The card, and what the process finds taken of it beside its pools.
TensorFlowCard tensorflow_card(const Card& card, const CheckSettings& settings) {
  return {.total = card.cuda_total,
          .in_use = settings.in_use,
          .context = context_bytes(card, settings),
          .compute_capability_major = static_cast<int>(card.compute_capability)};
}

/// The pools of a process, or those that it had when it failed.
std::vector<LogicalDevice> pools_of(const TensorFlowReplay& replay, const TensorFlowCard& card) {
  std::vector<LogicalDevice> devices;
  Bytes left = card.total - card.in_use - card.context;
  for (std::size_t i = 0; i < replay.limits.size() && i < replay.replicas.size(); ++i) {
    const ProcessReplay& replica = replay.replicas[i];
    const Bytes limit = std::clamp(replay.limits[i], Bytes(), std::max(left, Bytes()));
    devices.push_back({.name = fmt::format("GPU:{}", i),
                       .asked = replay.limits[i],
                       .limit = limit,
                       .pool = replica.reserved,
                       .used = replica.most_allocated()});
    left -= limit;
  }
  return devices;
}

/// The process that completed; where none did, one in pools of `least_pool` with room for all.
struct Outcome {
  TensorFlowReplay replay;
  std::optional<ProcessReplay::Failure> failure;
  std::vector<LogicalDevice> pools;  ///< on the card
  PoolAdvice would_do;
};

/// A step on a card, under one TensorFlowMemory or another.
class Process {
 public:
  explicit Process(const StepOnCard& on_card)
      : step_(on_card.step),
        touches_(on_card.touches),
        buffers_(on_card.buffers),
        card_(tensorflow_card(on_card.card, on_card.settings)),
        memory_(on_card.settings.tensorflow),
        reserve_(on_card.settings.reserve),
        libraries_(library_loads(*on_card.step.graph, on_card.card, on_card.settings)) {}

  [[nodiscard]] Outcome run() const {
    Outcome outcome{.replay = on_card(memory_)};
    outcome.pools = pools_of(outcome.replay, card_);
    std::optional<Bytes> least;
    if (const auto* failure = outcome.replay.failure()) {
      outcome.failure = *failure;
      if (failure->library) outcome.replay = with_room_for_libraries();
      if (!outcome.replay.completed()) {
        least = least_pool();
        outcome.replay = in_pools_of(*least);
      }
    }
    if (!fits(outcome.replay.pools()) || outcome.failure) outcome.would_do = would_do(least);
    return outcome;
  }

  [[nodiscard]] bool completes(const TensorFlowMemory& memory) const {
    const TensorFlowReplay replay = on_card(memory);
    return replay.completed() && fits(replay.pools());
  }
  [[nodiscard]] bool completes() const { return completes(memory_); }

 private:
  [[nodiscard]] TensorFlowReplay on_card(const TensorFlowMemory& memory) const {
    return replay_tensorflow(step_, touches_, buffers_, libraries_, card_, memory);
  }

  [[nodiscard]] Bytes library_bytes() const {
    Bytes bytes;
    for (const LibraryLoad& library : libraries_) bytes += library.bytes;
    return bytes;
  }

  [[nodiscard]] bool fits(Bytes pools) const {
    return pools + card_.context + library_bytes() + card_.in_use + reserve_ <= card_.total;
  }

  /// The pools as the card allows them, while the libraries are somewhere else.
  [[nodiscard]] TensorFlowReplay with_room_for_libraries() const {
    return replay_tensorflow(step_, touches_, buffers_, {}, card_, memory_);
  }

  [[nodiscard]] std::int64_t devices() const {
    return std::max<std::int64_t>(1, std::ssize(memory_.logical_devices));
  }

  [[nodiscard]] TensorFlowMemory limited_to(Bytes limit) const {
    TensorFlowMemory memory = memory_;
    memory.logical_devices.assign(static_cast<std::size_t>(devices()), limit);
    memory.allow_growth = false;
    return memory;
  }

  [[nodiscard]] TensorFlowReplay in_pools_of(Bytes limit) const {
    TensorFlowCard card = card_;
    card.total = unlimited_memory + outside_pools;
    return replay_tensorflow(step_, touches_, buffers_, libraries_, card, limited_to(limit));
  }

  /// In whole mebibytes, to within half a percent; its search takes it that more never hurts.
  [[nodiscard]] Bytes least_pool() const {
    const std::int64_t most = unlimited_memory.count() / mebibyte / devices();
    std::int64_t fails = 0;
    std::int64_t completes = 64;
    while (!in_pools_of(Bytes(completes * mebibyte)).completed()) {
      if (completes >= most) {
        throw std::logic_error(
            fmt::format("a step does not complete in pools of {} MiB", completes));
      }
      fails = completes;
      completes *= 2;
    }
    while (completes - fails > 1 + completes / 256) {
      const std::int64_t middle = fails + (completes - fails) / 2;
      (in_pools_of(Bytes(middle * mebibyte)).completed() ? completes : fails) = middle;
    }
    return Bytes(completes * mebibyte);
  }

  /// A pool that is too small should be `least`; one that leaves the libraries no room, what they
  /// leave.
  [[nodiscard]] PoolAdvice would_do(std::optional<Bytes> least) const {
    PoolAdvice advice;
    const Bytes left =
        card_.total - card_.in_use - reserve_ - card_.context - library_bytes() - device_page;
    const Bytes each = whole_mebibytes(least.value_or(Bytes(left.count() / devices())));
    if (each > Bytes() && completes(limited_to(each))) advice.limit = each;
    TensorFlowMemory growing = memory_;
    growing.allow_growth = true;
    advice.growth = !memory_.allow_growth && completes(growing);
    return advice;
  }

  const SizedStep& step_;
  const std::vector<Touches>& touches_;
  const std::vector<RuntimeBuffer>& buffers_;
  TensorFlowCard card_;
  const TensorFlowMemory& memory_;
  Bytes reserve_;
  std::vector<LibraryLoad> libraries_;
};

AllocationFailure failure_of(const StepGraph& graph, const ProcessReplay::Failure& failure) {
  return {.at = failure,
          .node = failure.node.valid() ? graph.node(failure.node).name : "",
          .message = tensorflow_message(graph, failure)};
}

RuntimeRun run_tensorflow(const StepOnCard& on_card) {
  Outcome outcome = Process(on_card).run();
  RuntimeRun run{.replicas = std::move(outcome.replay.replicas),
                 .pools = std::move(outcome.pools),
                 .failure = std::nullopt,
                 .would_do = outcome.would_do};
  if (outcome.failure) run.failure = failure_of(*on_card.step.graph, *outcome.failure);
  return run;
}

bool completes_in_tensorflow(const StepOnCard& on_card) { return Process(on_card).completes(); }

// What one of its pools can hold.
Bytes tensorflow_limit(Bytes left, const StepGraph& graph, const Card& card,
                       const CheckSettings& settings) {
  const Bytes room = tensorflow_room(library_loads(graph, card, settings),
                                     tensorflow_card(card, settings), settings.tensorflow);
  return std::min(left, room);
}

/// Whether the figures are of the least pools in which the step runs, since the card's do not hold
/// it. Where only a library found no room they are of the card's.
bool is_in_least_pools(const RuntimeRun& run) {
  if (!run.failure) return false;
  if (!run.failure->at.library || !run.pools || run.pools->empty()) return true;
  return run.replicas.front().reserved > run.pools->front().limit;
}

// The replica on GPU:0 is the one whose tensors are listed.
std::vector<RuntimeRow> tensorflow_rows(const RuntimeRun& run, const CheckSettings& settings,
                                        Bytes tensor_bytes) {
  const bool in_least = is_in_least_pools(run);
  const std::string source =
      fmt::format("TensorFlow's BFC allocator, simulated for {} steps; {}", run.process().steps,
                  in_least ? "the least pool that holds them, not the card's"
                  : settings.tensorflow.allow_growth ? "it grows"
                                                     : "it takes its limit at once");
  std::vector<RuntimeRow> rows;
  for (std::size_t i = 0; i < run.replicas.size(); ++i) {
    const Bytes pool = run.replicas[i].reserved;
    rows.push_back({i == 0 ? "rest of the pool" : fmt::format("pool of GPU:{}", i),
                    i == 0 ? pool - tensor_bytes : pool, source});
  }
  return rows;
}

}  // namespace

// It keeps no buffers: its sums of gradients are nodes of the step (rewrite/packed_gradients.hpp).
// NCCL takes what the pools leave; how much is not known (docs/tensorflow.md).
RuntimeProcess tensorflow_process() {
  return {.runtime = Runtime::tensorflow,
          .run = run_tensorflow,
          .completes = completes_in_tensorflow,
          .limit = tensorflow_limit,
          .allocator_rows = tensorflow_rows,
          .own_kernels = KernelLibrary::tensorflow,
          .has_nccl_figure = false};
}

}  // namespace stowage
