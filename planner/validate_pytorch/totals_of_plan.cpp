#include "planner/validate_pytorch/totals_of_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "estimator/check/batch_search.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/rewrite/checkpoints.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/step/offloaded_bytes.hpp"
#include "planner/validate_pytorch/bound_of_updates.hpp"

namespace stowage {

namespace {

// Sums of seconds that are added up in another order differ by less.
constexpr double rounding = 1e-9;

bool is_same_time(double one, double other) {
  return std::abs(one - other) <= rounding * std::max({one, other, 1e-6});
}

/// Bytes that a step's own nodes copy: to the host, and from it.
struct CopiedBytes {
  Bytes out, in;
  Bytes updated;  ///< of those that come back: updated parameters
};

CopiedBytes copied_by_nodes(const SizedStep& step) {
  CopiedBytes copied;
  for (const KernelNode& node : step.graph->nodes) {
    if (node.kernel != Kernel::foreign) continue;
    if (kernel_name(node) == offload_kernel) {
      copied.out += step.bytes(node.reads.front().storage);
    } else if (kernel_name(node) == fetch_kernel) {
      const Bytes bytes = step.bytes(node.writes.front().storage);
      copied.in += bytes;
      if (node.phase == Phase::update) copied.updated += bytes;
    }
  }
  return copied;
}

class CountTotals {
 public:
  CountTotals(const PytorchPlan& plan, const PlanPlaces& places, const StepOfPlan& asked,
              const FoundDecisions& found, WorkspaceSource& workspaces)
      : plan_(plan),
        totals_(plan.totals),
        places_(places),
        asked_(asked),
        found_(found),
        workspaces_(workspaces),
        parts_(plan.chunks ? plan.chunks->parts : 1),
        batch_(plan.batch / parts_) {}

  Result<std::vector<Check>> run() && {
    hooked_ = hooked_graph(found_.step, found_.stays, found_.pieces, found_.updates);
    StepGraph graph = hooked_.step;
    if (parts_ > 1) graph = graph_in_parts(std::move(graph), parts_);
    const auto again = shared(found_.step);
    const auto streamless = parts_ > 1 ? shared(graph_in_parts(found_.step, parts_)) : again;
    const MovedUpdates no_host{.early = found_.updates.early,
                               .on_host = std::vector<bool>(found_.updates.on_host.size(), false)};
    StepGraph at_home = hooked_graph(found_.step, {}, {}, no_host).step;
    const auto add = [&](std::shared_ptr<const StepGraph> of, std::int64_t batch) -> Result<void> {
      return size(std::move(of), batch).map([&](SizedStep&& step) {
        sized_.push_back(std::move(step));
      });
    };
    const auto added = add(asked_.document.graph, plan_.batch * plan_.micro_batches)
                           .and_then([&] { return add(again, batch_); })
                           .and_then([&] { return add(shared(std::move(graph)), batch_); })
                           .and_then([&] { return add(streamless, batch_); })
                           .and_then([&] { return add(shared(std::move(at_home)), batch_); });
    if (!added) return tl::unexpected(added.error());
    check_copies();
    if (auto run = run_allocator(); !run) return tl::unexpected(run.error());
    check_times();
    check_bounds();
    return std::move(checks_);
  }

 private:
  static std::shared_ptr<const StepGraph> shared(StepGraph graph) {
    return std::make_shared<const StepGraph>(std::move(graph));
  }
  [[nodiscard]] Result<SizedStep> size(std::shared_ptr<const StepGraph> graph, std::int64_t batch) {
    return size_step(std::move(graph), batch, workspaces_);
  }
  /// In parts, with second runs, but with all parameters on the GPU.
  [[nodiscard]] const SizedStep& streamless() const { return sized_[3]; }
  /// With second runs and early updates, all of them on the GPU.
  [[nodiscard]] const SizedStep& at_home() const { return sized_[4]; }
  [[nodiscard]] const SizedStep& whole() const { return sized_[0]; }
  [[nodiscard]] const SizedStep& again() const { return sized_[1]; }   // with second runs
  [[nodiscard]] const SizedStep& hooked() const { return sized_[2]; }  // with the hooks' copies

  void compare(Violations& wrong, std::string_view member, Bytes counted, Bytes said) const {
    if (counted == said) return;
    wrong.note([&] {
      return fmt::format("{}: '{}' is {}, counted are {}", places_.at({"totals", member}), member,
                         said.count(), counted.count());
    });
  }

  void compare(Violations& wrong, std::string_view member, double counted, double said) const {
    if (is_same_time(counted, said)) return;
    wrong.note([&] {
      return fmt::format("{}: '{}' is {}, counted are {}", places_.at({"totals", member}), member,
                         said, counted);
    });
  }

  void check_copies() {
    Bytes away;
    for (const StayOnHost& stay : found_.stays) away += again().bytes(stay.storage);
    // The nodes of the rewritten step have the stays' copies of one micro-batch among them.
    own_copies_ = copied_by_nodes(hooked());
    own_copies_.out = own_copies_.out - away;
    own_copies_.in = own_copies_.in - away;
    moved_ = {.out = away * plan_.micro_batches + own_copies_.out,
              .in = away * plan_.micro_batches + own_copies_.in};
    Violations wrong;
    compare(wrong, "to_host_bytes", moved_.out, totals_.to_host);
    compare(wrong, "from_host_bytes", moved_.in, totals_.from_host);
    checks_.push_back(verdict("copied bytes", wrong,
                              fmt::format("{} to the host, {} from it", format_bytes(moved_.out),
                                          format_bytes(moved_.in))));
    Bytes pinned = away;
    for (const HostBuffer& buffer : found_.step.host_buffers) {
      if (buffer.pinned) pinned += Bytes(buffer.bytes);
    }
    for (const PieceOfModule& piece : found_.pieces) pinned += Bytes(piece.bytes);
    // The CPU has a copy of each parameter that it updates, and its gradient.
    if (plan_.optimizer_on_cpu) pinned += own_copies_.updated * 2;
    Violations unlike;
    compare(unlike, "pinned_bytes", pinned, totals_.pinned);
    checks_.push_back(verdict("pinned memory", unlike, format_bytes(pinned)));
  }

  /// Whether the step runs as the script and its process have it.
  [[nodiscard]] bool is_unchanged() const {
    PytorchPlan changes = plan_;
    if (asked_.process.allocator.expandable_segments) changes.expandable_segments = false;
    return changes.changes_nothing();
  }

  Result<void> run_allocator() {
    CheckSettings settings = asked_.process;
    settings.allocator.expandable_segments = plan_.expandable_segments;
    SizedStep step = hooked();
    if (plan_.micro_batches > 1) {
      auto graph = with_micro_batches(*step.graph, plan_.micro_batches);
      if (!graph) return tl::unexpected(std::move(graph.error()));
      auto sized = size(shared(*std::move(graph)), batch_);
      if (!sized) return tl::unexpected(std::move(sized.error()));
      step = *std::move(sized);
    }
    Bytes margin;  // of what is changed; a step that fits as it is fits
    if (!is_unchanged()) margin = usual_margin(*step.graph, asked_.card, settings);
    settings.reserve += margin;
    const CheckReport report = check(step, asked_.card, settings);
    Violations wrong, small;
    compare(wrong, "peak_allocated_bytes", report.run.process().steady.allocated,
            totals_.peak_allocated);
    compare(wrong, "peak_reserved_bytes", report.reserved_bytes(), totals_.peak_reserved);
    compare(wrong, "device_bytes", report.device_bytes, totals_.device_bytes);
    checks_.push_back(verdict(
        "allocator", wrong,
        fmt::format("run anew: {} allocated at most, {} reserved",
                    format_bytes(totals_.peak_allocated), format_bytes(totals_.peak_reserved))));
    const Bytes available = report.available_bytes + margin;
    if (available != plan_.available) {
      small.note([&] {
        return fmt::format("{}: {} has {} available bytes, not {}",
                           places_.at({"gpu", "available_bytes"}), asked_.card.name,
                           available.count(), plan_.available.count());
      });
    }
    if (!report.fits) {
      small.note([&] {
        return fmt::format("{}: the step does not fit: {}", places_.at({"gpu"}), report.culprit);
      });
    }
    checks_.push_back(verdict(
        "card", small,
        fmt::format("{} of {} on {}, {} of them in reserve", format_bytes(report.device_bytes),
                    format_bytes(available), asked_.card.name, format_bytes(margin))));
    return {};
  }

  template <typename Seconds>
  [[nodiscard]] static double seconds_of_update(const SizedStep& step, const Seconds& seconds) {
    double sum = 0;
    for (std::size_t n = 0; n < step.graph->nodes.size(); ++n) {
      if (step.graph->nodes[n].phase == Phase::update) sum += seconds(step, NodeId::of(n));
    }
    return sum;
  }

  /// The step's own update at the host's rates, shared out by the gradients' bytes.
  [[nodiscard]] HostUpdateRate rate_of_updates() const {
    Bytes gradients;
    for (const GradientOfParameter& one : gradients_of_parameters(*whole().graph)) {
      gradients += whole().bytes(one.gradient);
    }
    if (gradients == Bytes() || found_.updates.changes_nothing()) return {};
    return {.seconds_a_byte = seconds_of_update(whole(), asked_.rates.cpu) /
                              static_cast<double>(gradients.count()),
            .early = found_.updates.early};
  }

  /// What the hooks of a pass take of the host: of saved tensors, where one moves, and of early
  /// updates.
  [[nodiscard]] double seconds_of_hooks() const {
    const std::size_t calls = found_.stays.empty() ? 0 : hooked_.step.saved.size();
    const std::size_t updates =
        found_.updates.early ? gradients_of_parameters(*whole().graph).size() : 0;
    return asked_.rates.hook * static_cast<double>(calls) +
           asked_.rates.update_hook * static_cast<double>(updates);
  }

  void check_times() {
    const StepRates& rates = asked_.rates;
    std::vector<Bytes> bytes;
    for (const StayOnHost& stay : found_.stays) bytes.push_back(again().bytes(stay.storage));
    seconds_ = hooked_seconds(hooked(), hooked_, bytes, rates, rate_of_updates());
    const double one = std::max(seconds_.step, seconds_of_hooks());
    const double update = seconds_of_update(hooked(), rates.gpu);
    const auto times = static_cast<double>(plan_.micro_batches);
    const double step = times * (one - update) + update;
    const double everything = hooked_seconds(whole(), {}, {}, rates, {}).step;
    double second_runs = 0;
    for (std::size_t n = 0; n < again().graph->nodes.size(); ++n) {
      if (!is_second_run(again().graph->nodes[n])) continue;
      second_runs += times * rates.gpu(again(), NodeId::of(n));
    }
    Violations wrong;
    compare(wrong, "step_seconds", step, totals_.step_seconds);
    compare(wrong, "all_gpu_step_seconds", everything, totals_.all_gpu_step_seconds);
    compare(wrong, "recomputed_seconds", second_runs, totals_.recomputed_seconds);
    checks_.push_back(
        verdict("step time", wrong, fmt::format("simulated anew: {:.4g} ms", 1e3 * step)));
  }

  /// So many bytes of the step's tensors have no room at the peak.
  [[nodiscard]] Bytes without_room(const SizedStep& step) const {
    const MemoryRules rules{.granularity = Bytes(512), .with_workspaces = false};
    Bytes most;
    for (const Bytes live : live_bytes(step, rules, storage_touches(*step.graph))) {
      most = std::max(most, live);
    }
    const Bytes limit = allocator_limit(*asked_.document.graph, asked_.card, asked_.process);
    return std::max(most - limit, Bytes());
  }

  void check_bounds() {
    Violations wrong;
    const Bytes moved = moved_.out + moved_.in;
    const auto note = [&](std::string_view member, std::string text) {
      wrong.note([&] { return fmt::format("{}: {}", places_.at({"totals", member}), text); });
    };
    if (totals_.pcie_lower_bound > moved) {
      note("pcie_lower_bound_bytes",
           fmt::format("the plan moves {} bytes, fewer than its bound", moved.count()));
    }
    if (totals_.step_lower_bound_seconds.value_or(0) > totals_.step_seconds * (1 + rounding)) {
      note("step_lower_bound_seconds", "the plan's step is shorter than its bound");
    }
    const bool is_proved =
        !found_.pieces.empty() || found_.updates.some_on_host || found_.stays.empty();
    if (!found_.pieces.empty()) {
      check_bounds_of_streaming(wrong);
    } else if (found_.updates.some_on_host) {
      compare(wrong, "pcie_lower_bound_bytes", bound_of_updates(whole(), without_room(at_home())),
              totals_.pcie_lower_bound);
    } else {
      // What an update on the host cannot do without; offloaded tensors come on top.
      const Bytes least = own_copies_.out + own_copies_.in;
      if (is_proved) compare(wrong, "pcie_lower_bound_bytes", least, totals_.pcie_lower_bound);
      if (totals_.pcie_lower_bound < least) {
        note("pcie_lower_bound_bytes",
             fmt::format("the plan cannot move less than {} bytes", least.count()));
      }
    }
    if (found_.pieces.empty() && is_proved && totals_.step_lower_bound_seconds) {
      note("step_lower_bound_seconds", "no bound is known for a plan that offloads nothing");
    }
    checks_.push_back(verdict("bounds", wrong,
                              is_proved ? "derived anew"
                                        : "no lower than the plan; not proved again, since the "
                                          "file holds no certificate"));
  }

  void check_bounds_of_streaming(Violations& wrong) const {
    // Streamed parameters lie on the GPU in the step that is bounded.
    const Bytes least = without_room(streamless());
    compare(wrong, "pcie_lower_bound_bytes", least, totals_.pcie_lower_bound);
    compare(wrong, "step_lower_bound_seconds",
            std::max(seconds_.kernels, asked_.rates.from_host(least)),
            totals_.step_lower_bound_seconds.value_or(0));
  }

  const PytorchPlan& plan_;
  const PytorchTotals& totals_;
  const PlanPlaces& places_;
  const StepOfPlan& asked_;
  const FoundDecisions& found_;
  WorkspaceSource& workspaces_;
  std::int64_t parts_, batch_;
  HookedGraph hooked_;
  std::vector<SizedStep> sized_;
  CopiedBytes own_copies_, moved_;
  HookedSeconds seconds_;
  std::vector<Check> checks_;
};

}  // namespace

Result<std::vector<Check>> count_totals(const PytorchPlan& plan, const PlanPlaces& places,
                                        const StepOfPlan& asked, const FoundDecisions& found,
                                        WorkspaceSource& workspaces) {
  return CountTotals(plan, places, asked, found, workspaces).run();
}

}  // namespace stowage
