#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "estimator/runtime/runtime_run.hpp"

namespace stowage {

namespace {

constexpr std::int64_t mebibyte = 1 << 20;

/// Beside pools of all_it_wants together: the context, the libraries, and what is in use.
constexpr Bytes outside_pools{std::int64_t{1} << 60};

Bytes whole_mebibytes(Bytes bytes) { return Bytes(bytes.count() / mebibyte * mebibyte); }

/// The process that completed; where none did, one in pools of `least_pool` with room for all.
struct Outcome {
  TensorFlowReplay replay;
  std::optional<ProcessReplay::Failure> failure;
  std::vector<std::string> would_do;
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

  [[nodiscard]] TensorFlowMemory pools_of(Bytes limit) const {
    TensorFlowMemory memory = memory_;
    memory.logical_devices.assign(static_cast<std::size_t>(devices()), limit);
    memory.allow_growth = false;
    return memory;
  }

  [[nodiscard]] TensorFlowReplay in_pools_of(Bytes limit) const {
    TensorFlowCard card = card_;
    card.total = all_it_wants + outside_pools;
    return replay_tensorflow(step_, touches_, buffers_, libraries_, card, pools_of(limit));
  }

  /// In whole mebibytes, to within half a percent; its search takes it that more never hurts.
  [[nodiscard]] Bytes least_pool() const {
    const std::int64_t most = all_it_wants.count() / mebibyte / devices();
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
  [[nodiscard]] std::vector<std::string> would_do(std::optional<Bytes> least) const {
    std::vector<std::string> options;
    const Bytes left =
        card_.total - card_.in_use - reserve_ - card_.context - library_bytes() - device_page;
    const Bytes each = whole_mebibytes(least.value_or(Bytes(left.count() / devices())));
    if (each > Bytes() && completes(pools_of(each))) {
      options.push_back(fmt::format("--memory-limit {}MiB", each.count() / mebibyte));
    }
    TensorFlowMemory growing = memory_;
    growing.allow_growth = true;
    if (!memory_.allow_growth && completes(growing)) options.emplace_back("--memory-growth");
    return options;
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
  const std::optional<MissingLibrary>& missing = failure.library;
  return {.node = failure.node.valid() ? graph.node(failure.node).name : "",
          .step = failure.step,
          .tried = missing ? missing->library.bytes : failure.out_of_memory.tried,
          .message = tensorflow_message(graph, failure),
          .library = missing ? missing->library.name : ""};
}

std::vector<LogicalDevice> devices_of(const TensorFlowReplay& replay) {
  std::vector<LogicalDevice> devices;
  for (std::size_t i = 0; i < replay.replicas.size(); ++i) {
    const ProcessReplay& replica = replay.replicas[i];
    devices.push_back({fmt::format("GPU:{}", i), replay.limits[i], replica.reserved,
                       std::max({replica.loaded.allocated, replica.first_step.allocated,
                                 replica.steady.allocated})});
  }
  return devices;
}

}  // namespace

RuntimeRun run_tensorflow(const StepOnCard& on_card) {
  Outcome outcome = Process(on_card).run();
  const auto& replicas = outcome.replay.replicas;
  const auto count = static_cast<std::int64_t>(replicas.size());
  RuntimeRun run;
  if (outcome.failure) run.failure = failure_of(*on_card.step.graph, *outcome.failure);
  run.devices = devices_of(outcome.replay);
  run.would_do = std::move(outcome.would_do);
  // All replicas are alike; the first one stands for them.
  run.reserved = {count * replicas.front().loaded.reserved,
                  count * replicas.front().first_step.reserved, outcome.replay.pools()};
  run.engine = replicas.front().engine;
  run.cached_at_peak = replicas.front().cached_at_peak;
  run.releases = replicas.front().releases;
  run.replayed_steps = replicas.front().steps;
  return run;
}

bool completes_in_tensorflow(const StepOnCard& on_card) { return Process(on_card).completes(); }

}  // namespace stowage
