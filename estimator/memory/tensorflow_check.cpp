#include "estimator/memory/tensorflow_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stowage {

namespace {

constexpr Bytes all_it_wants{std::int64_t{1} << 60};
constexpr std::int64_t mebibyte = 1 << 20;

Bytes whole_mebibytes(Bytes bytes) { return Bytes(bytes.count() / mebibyte * mebibyte); }

/// A step on a card, under one TensorFlowMemory or another.
class Process {
 public:
  Process(const SizedStep& step, const std::vector<Touches>& touches,
          const std::vector<RuntimeBuffer>& buffers, const Card& card,
          const CheckSettings& settings)
      : step_(step),
        touches_(touches),
        buffers_(buffers),
        card_(tensorflow_card(card, settings)),
        memory_(settings.tensorflow),
        reserve_(settings.reserve),
        libraries_(library_loads(*step.graph, settings.runtime)) {}

  [[nodiscard]] TensorFlowOutcome run() const {
    TensorFlowReplay replay = on_card(memory_);
    TensorFlowOutcome outcome;
    if (const auto* failure = replay.failure()) {
      outcome.failure = *failure;
      if (failure->library) replay = with_room_for_libraries();
      if (!replay.completed()) {
        outcome.least_pool = least_pool();
        replay = in_pools_of(*outcome.least_pool);
      }
    }
    outcome.pools = replay.pools();
    if (!fits(outcome.pools) || outcome.failure) outcome.would_do = would_do(outcome.least_pool);
    for (std::size_t i = 0; i < replay.replicas.size(); ++i) {
      const ProcessReplay& replica = replay.replicas[i];
      outcome.devices.push_back({fmt::format("GPU:{}", i), replay.limits[i], replica.reserved,
                                 std::max({replica.loaded.allocated, replica.first_step.allocated,
                                           replica.steady.allocated})});
    }
    outcome.replica = std::move(replay.replicas.front());
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

  [[nodiscard]] TensorFlowMemory pools_of(Bytes limit) const {
    TensorFlowMemory memory = memory_;
    memory.logical_devices.assign(std::max<std::size_t>(1, memory_.logical_devices.size()), limit);
    memory.allow_growth = false;
    return memory;
  }

  [[nodiscard]] TensorFlowReplay in_pools_of(Bytes limit) const {
    TensorFlowCard card = card_;
    card.total = all_it_wants;
    return replay_tensorflow(step_, touches_, buffers_, libraries_, card, pools_of(limit));
  }

  /// In whole mebibytes, to within half a percent; its search takes it that more never hurts.
  [[nodiscard]] Bytes least_pool() const {
    std::int64_t fails = 0;
    std::int64_t completes = 64;
    while (!in_pools_of(Bytes(completes * mebibyte)).completed()) {
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
    const auto devices =
        static_cast<std::int64_t>(std::max<std::size_t>(1, memory_.logical_devices.size()));
    const Bytes each = whole_mebibytes(least.value_or(Bytes(left.count() / devices)));
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

std::string library_message(const MissingLibrary& missing) {
  const std::string& name = missing.library.name;
  std::string_view text = "failed call to cuInit: CUDA_ERROR_OUT_OF_MEMORY: out of memory";
  if (name == "cuBLAS") text = "failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED";
  if (name == "cuDNN") text = "Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR";
  return fmt::format("{} ({} wants {}, and {} are left)", text, name,
                     format_bytes(missing.library.bytes), format_bytes(missing.free));
}

}  // namespace

TensorFlowOutcome run_tensorflow(const SizedStep& step, const std::vector<Touches>& touches,
                                 const std::vector<RuntimeBuffer>& buffers, const Card& card,
                                 const CheckSettings& settings) {
  return Process(step, touches, buffers, card, settings).run();
}

bool tensorflow_completes(const SizedStep& step, const std::vector<Touches>& touches,
                          const std::vector<RuntimeBuffer>& buffers, const Card& card,
                          const CheckSettings& settings) {
  return Process(step, touches, buffers, card, settings).completes();
}

std::string tensorflow_message(const StepGraph& graph, const ProcessReplay::Failure& failure) {
  const std::string text = failure.library ? library_message(*failure.library)
                                           : tensorflow_message(failure.out_of_memory);
  if (!failure.node.valid()) return fmt::format("before the first step: {}", text);
  return fmt::format("in step {}, while {} runs: {}", failure.step, graph.node(failure.node).name,
                     text);
}

}  // namespace stowage
