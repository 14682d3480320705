#include "estimator/memory/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "estimator/memory/allocator_replay.hpp"
#include "estimator/memory/arena.hpp"

namespace stowage {

namespace {

std::vector<Bytes> live_without_workspaces(const SizedStep& step, MemoryRules rules,
                                           const std::vector<Touches>& touches) {
  rules.with_workspaces = false;
  return live_bytes(step, rules, touches);
}

Bytes arena_bytes(const StepMemory& memory) {
  std::vector<ArenaRequest> requests(memory.uses.size());
  for (const Interval& interval : lifetimes(memory.uses, memory.steps)) {
    ArenaRequest& request = requests[static_cast<std::size_t>(interval.use)];
    request.live.push_back({interval.begin, interval.end});
    request.bytes = interval.bytes;
  }
  return pack_arena(requests).peak;
}

std::vector<EngineFallback> fallbacks(const SizedStep& step, const std::vector<int>& engine) {
  std::vector<EngineFallback> result;
  for (std::size_t i = 0; i < engine.size(); ++i) {
    if (engine[i] == 0) continue;
    const Engines& choices = step.engines[i];
    result.push_back(
        {step.graph->nodes[i].name, choices.front(), choices[static_cast<std::size_t>(engine[i])]});
  }
  return result;
}

// Keras makes the optimizer's variables before the first step.
Bytes loaded_bytes(const SizedStep& step, Bytes granularity, bool with_state) {
  Bytes bytes;
  for (std::size_t i = 0; i < step.graph->storages.size(); ++i) {
    const StorageClass kind = step.graph->storages[i].storage_class;
    if (kind == StorageClass::parameter || kind == StorageClass::buffer ||
        (with_state && kind == StorageClass::optimizer_state)) {
      bytes += round_up(step.storage_bytes[i], granularity);
    }
  }
  return bytes;
}

Bytes input_bytes(const SizedStep& step) {
  Bytes bytes;
  for (std::size_t i = 0; i < step.graph->storages.size(); ++i) {
    if (step.graph->storages[i].storage_class == StorageClass::input) {
      bytes += step.storage_bytes[i];
    }
  }
  return bytes;
}

/// What the runtime held from the driver.
struct Reserved {
  Bytes loaded, first_step, most;
};

std::string message_of(const StepGraph& graph, const ProcessReplay::Failure& failure) {
  const std::string text = pytorch_message(failure.out_of_memory);
  if (!failure.node.valid()) return fmt::format("while the model is loaded: {}", text);
  return fmt::format("in step {}, while {} runs: {}", failure.step, graph.node(failure.node).name,
                     text);
}

/// One check: the parts of a report that depend on the runtime.
class Check {
 public:
  Check(const SizedStep& step, const Card& card, const CheckSettings& settings)
      : step_(step),
        card_(card),
        settings_(settings),
        limit_(allocator_limit(*step.graph, card, settings)),
        touches_(storage_touches(*step.graph)),
        rules_{.granularity = runtime_granularity(settings.runtime),
               .buffers = runtime_buffers(*step.graph, card, settings)} {}

  [[nodiscard]] bool completes() && {
    if (settings_.runtime == Runtime::tensorflow) {
      return tensorflow_completes(step_, touches_, rules_.buffers, card_, settings_);
    }
    if (settings_.runtime != Runtime::pytorch) return std::move(*this).run().fits;
    return limit_ >= Bytes() && replay_within(limit_, settings_.allocator).completed();
  }

  CheckReport run() && {
    if (settings_.runtime == Runtime::pytorch) {
      replay_pytorch();
    } else if (settings_.runtime == Runtime::tensorflow) {
      replay_in_tensorflow();
    } else {
      rules_.engine = fitting_engines(step_, live_without_workspaces(step_, rules_, touches_),
                                      limit_, rules_.granularity);
    }
    size_phases();
    report_.runtime_rows = runtime_rows();
    report_.host_bytes = replicas() * input_bytes(step_) + Bytes(step_.graph->host_state_bytes);
    report_.total_bytes = card_.cuda_total;
    report_.available_bytes = card_.cuda_total - settings_.in_use - settings_.reserve;
    report_.headroom = report_.available_bytes - report_.device_bytes;
    const bool ran = settings_.runtime != Runtime::tensorflow || !report_.failure;
    report_.fits = ran && report_.headroom >= Bytes();
    report_.fallbacks = fallbacks(step_, rules_.engine);
    report_.workspace_origin = step_.workspace_origin;
    report_.culprit = culprit();
    return std::move(report_);
  }

 private:
  [[nodiscard]] ProcessReplay replay_within(Bytes limit, const AllocatorSettings& allocator) const {
    return replay_process(step_, touches_,
                          {.allocator = allocator,
                           .limit = limit,
                           .buffers = rules_.buffers,
                           .outside = outside_allocator(*step_.graph, card_, settings_),
                           .others = settings_.in_use + settings_.reserve});
  }

  void replay_pytorch() {
    constexpr Bytes all_it_wants{std::int64_t{1} << 60};
    // Below 0 the process does not come so far as to ask for a tensor.
    const bool has_room = limit_ >= Bytes();
    ProcessReplay run = replay_within(has_room ? limit_ : all_it_wants, settings_.allocator);
    if (run.failure) {
      report_.failure = failure_of(*run.failure);
      run = replay_within(all_it_wants, settings_.allocator);
    }
    rules_.engine = run.engine;
    reserved_ = Reserved{run.loaded.reserved, run.first_step.reserved, run.reserved};
    report_.cached_at_peak = run.cached_at_peak;
    report_.releases = run.releases;
    report_.settles = run.steady_reached;
    report_.replayed_steps = run.steps;
  }

  void replay_in_tensorflow() {
    TensorFlowOutcome run = run_tensorflow(step_, touches_, rules_.buffers, card_, settings_);
    if (run.failure) {
      const auto& library = run.failure->library;
      report_.failure = {
          .node = run.failure->node.valid() ? step_.graph->node(run.failure->node).name : "",
          .step = run.failure->step,
          .tried = library ? library->library.bytes : run.failure->out_of_memory.tried,
          .message = tensorflow_message(*step_.graph, *run.failure),
          .library = library ? library->library.name : ""};
    }
    rules_.engine = run.replica.engine;
    report_.logical_devices = std::move(run.devices);
    report_.would_do = std::move(run.would_do);
    reserved_ = Reserved{replicas() * run.replica.loaded.reserved,
                         replicas() * run.replica.first_step.reserved, run.pools};
    report_.cached_at_peak = run.replica.cached_at_peak;
    report_.releases = run.replica.releases;
    report_.replayed_steps = run.replica.steps;
  }

  [[nodiscard]] std::int64_t replicas() const {
    return std::max<std::int64_t>(1, std::ssize(report_.logical_devices));
  }

  [[nodiscard]] AllocationFailure failure_of(const ProcessReplay::Failure& failure) const {
    AllocatorSettings expandable = settings_.allocator;
    expandable.expandable_segments = true;
    return {.node = failure.node.valid() ? step_.graph->node(failure.node).name : "",
            .step = failure.step,
            .tried = failure.out_of_memory.tried,
            .message = message_of(*step_.graph, failure),
            .expandable_segments_would_do = !settings_.allocator.expandable_segments &&
                                            limit_ >= Bytes() &&
                                            replay_within(limit_, expandable).completed()};
  }

  /// A runtime without an allocator of its own takes what is live, or its arena.
  [[nodiscard]] Bytes held(const MemoryRules& rules, Bytes live) const {
    if (settings_.runtime != Runtime::stowage) return live;
    return arena_bytes(step_memory(step_, rules, touches_));
  }

  void size_phases() {
    const Bytes outside = outside_allocator(*step_.graph, card_, settings_);
    report_.footprint = peak_footprint(step_, rules_, touches_);
    report_.tensor_bytes = report_.footprint.total;
    report_.reserved_bytes = reserved_ ? reserved_->most : held(rules_, report_.tensor_bytes);
    report_.peak_at = step_.graph->nodes[static_cast<std::size_t>(report_.footprint.step)].name;
    report_.device_bytes = report_.reserved_bytes + outside;
    const bool keras = settings_.runtime == Runtime::tensorflow;
    const Bytes loaded = loaded_bytes(step_, rules_.granularity, keras);
    report_.phases.push_back(
        {"after loading", loaded,
         (reserved_ ? reserved_->loaded : loaded) + context_bytes(card_, settings_)});
    if (step_.graph->settings.mode == Mode::train) {
      MemoryRules first = rules_;
      first.step = keras ? StepNumber::steady : StepNumber::first;
      const Bytes live = peak(live_bytes(step_, first, touches_)).bytes;
      report_.phases.push_back(
          {"first step", live, (reserved_ ? reserved_->first_step : held(first, live)) + outside});
    }
    report_.phases.push_back({"steady steps", report_.tensor_bytes, report_.device_bytes});
  }

  [[nodiscard]] std::vector<RuntimeRow> runtime_rows() const {
    std::vector<RuntimeRow> rows;
    if (report_.reserved_bytes != report_.tensor_bytes) {
      const Bytes more = report_.reserved_bytes - report_.tensor_bytes;
      if (settings_.runtime == Runtime::stowage) {
        rows.push_back({"arena rounding and gaps", more, "256-byte alignment and packing"});
      } else if (settings_.runtime == Runtime::tensorflow) {
        add_pool_rows(rows);
      } else {
        rows.push_back({"cached by the allocator", more,
                        fmt::format("PyTorch's caching allocator, simulated for {} steps",
                                    report_.replayed_steps)});
      }
    }
    if (settings_.runtime != Runtime::ideal) {
      rows.push_back({"CUDA context", context_bytes(card_, settings_),
                      settings_.context ? "given by --context" : card_.context_source});
    }
    const std::vector<RuntimeRow> libraries = library_rows(*step_.graph, settings_.runtime);
    rows.insert(rows.end(), libraries.begin(), libraries.end());
    return rows;
  }

  // The replica on GPU:0 is the one whose tensors are listed.
  void add_pool_rows(std::vector<RuntimeRow>& rows) const {
    const std::string source = fmt::format(
        "TensorFlow's BFC allocator, simulated for {} steps; {}", report_.replayed_steps,
        settings_.tensorflow.allow_growth ? "it grows" : "it takes its limit at once");
    for (const LogicalDevice& device : report_.logical_devices) {
      const bool first = &device == &report_.logical_devices.front();
      rows.push_back({first ? "rest of the pool" : "pool of " + device.name,
                      first ? device.pool - report_.tensor_bytes : device.pool, source});
    }
  }

  [[nodiscard]] std::string culprit() const {
    if (report_.fits) return {};
    if (report_.failure && !report_.failure->library.empty()) {
      return fmt::format("{} finds no room beside what TensorFlow has taken, {}",
                         report_.failure->library, format_bytes(report_.reserved_bytes));
    }
    if (settings_.runtime == Runtime::pytorch && limit_ < Bytes()) {
      return fmt::format(
          "the CUDA context and the libraries' kernels alone take {}, of which {} are there",
          format_bytes(outside_allocator(*step_.graph, card_, settings_)),
          format_bytes(std::max(report_.available_bytes, Bytes())));
    }
    const FootprintRow& largest = report_.footprint.rows.front();
    return fmt::format("{} needs {} at once; its largest tensor is {} ({})", report_.peak_at,
                       format_bytes(report_.footprint.total), name_of(report_.footprint, largest),
                       format_bytes(largest.bytes));
  }

  const SizedStep& step_;
  const Card& card_;
  const CheckSettings& settings_;
  Bytes limit_;
  std::vector<Touches> touches_;
  MemoryRules rules_;
  std::optional<Reserved> reserved_;
  CheckReport report_;
};

}  // namespace

std::vector<int> fitting_engines(const SizedStep& step, const std::vector<Bytes>& live, Bytes limit,
                                 Bytes granularity) {
  std::vector<int> chosen(step.engines.size(), 0);
  for (std::size_t i = 0; i < step.engines.size(); ++i) {
    const Engines& choices = step.engines[i];
    const auto fits = [&](const Engine& engine) {
      return live[i] + round_up(engine.workspace, granularity) <= limit;
    };
    const auto first = std::find_if(choices.begin(), choices.end(), fits);
    const auto taken = first != choices.end()
                           ? first
                           : std::min_element(choices.begin(), choices.end(),
                                              [](const Engine& a, const Engine& b) {
                                                return a.workspace < b.workspace;
                                              });
    if (!choices.empty()) chosen[i] = static_cast<int>(taken - choices.begin());
  }
  return chosen;
}

CheckReport check(const SizedStep& step, const Card& card, const CheckSettings& settings) {
  return Check(step, card, settings).run();
}

bool completes(const SizedStep& step, const Card& card, const CheckSettings& settings) {
  return Check(step, card, settings).completes();
}

}  // namespace stowage
