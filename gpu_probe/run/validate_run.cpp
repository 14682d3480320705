#include "gpu_probe/run/validate_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "estimator/base/cure.hpp"
#include "estimator/base/median.hpp"
#include "gpu_probe/run/core_waits.hpp"
#include "gpu_probe/run/executor.hpp"
#include "gpu_probe/run/memory_reader.hpp"
#include "gpu_probe/run/missing_kernels.hpp"
#include "gpu_probe/run/resident_step.hpp"
#include "gpu_probe/run/rounding_masks.hpp"
#include "gpu_probe/run/time_check.hpp"

namespace stowage {
namespace {

/// One way to execute the plan.
struct RunMode {
  const char* name;
  bool padded;
  CopyTiming timing;
  bool clean = false;
};
constexpr std::size_t padded_mode = 2, clean_mode = 3;
constexpr std::array<RunMode, 4> run_modes{{
    {"exact offsets, early copies", false, {false, false}},
    {"exact offsets, late copies", false, {true, true}},
    {"padded places, late downloads", true, {false, true}},
    {"exact offsets, nothing in between", false, {false, false}, true},
}};
using Runs = std::array<Execution, run_modes.size()>;
constexpr std::size_t most_listed = 5;

std::string first_texts(const std::vector<std::string>& texts) {
  std::string text;
  for (std::size_t i = 0; i < std::min(texts.size(), most_listed); ++i) {
    text += (i == 0 ? "" : "; ") + texts[i];
  }
  if (texts.size() > most_listed) {
    text += fmt::format("; and {} more", texts.size() - most_listed);
  }
  return text;
}

Check completion_check(const RunMode& mode, const Execution& run, std::size_t nodes,
                       std::int64_t steps) {
  const bool clean = run.violations.empty() && run.completed;
  return {fmt::format("residency ({})", mode.name), clean,
          clean ? fmt::format("{} nodes, {} uploads, {} downloads{}", nodes, run.h2d.copies / steps,
                              run.d2h.copies / steps,
                              steps == 1 ? "" : fmt::format(" in each of {} steps", steps))
          : run.violations.empty() ? std::string("the step was not completed")
                                   : first_texts(run.violations)};
}

Check canary_check(const Execution& run) {
  const bool clean = run.overruns.empty() && run.completed;
  return {"canaries", clean,
          clean                  ? "no byte beside an argument was written"
          : run.overruns.empty() ? std::string("the padded run was not completed")
                                 : first_texts(run.overruns)};
}

std::string planned_text(Bytes measured, Bytes planned) {
  return fmt::format("{} bytes measured, {} planned", measured.count(), planned.count());
}

std::string planned_text(const CopyCount& measured, Bytes planned, std::int64_t steps) {
  return planned_text(measured.bytes, Bytes(planned.count() * steps)) +
         (steps == 1 ? "" : fmt::format(" in {} steps", steps));
}

void check_memory(const Plan& plan, const MeasuredRun& m, std::int64_t steps,
                  std::vector<Check>& checks) {
  checks.push_back({"GPU peak", m.gpu_peak == plan.totals.gpu_peak,
                    planned_text(m.gpu_peak, plan.totals.gpu_peak)});
  checks.push_back({"GPU arena", m.gpu_high_water <= plan.totals.arena,
                    fmt::format("touched up to byte {} of {}", m.gpu_high_water.count(),
                                plan.totals.arena.count())});
  const Bytes host = plan.totals.host_peak + plan.totals.pageable_peak;
  checks.push_back(
      {"host arena", m.host_high_water <= host,
       fmt::format("touched up to byte {} of {}", m.host_high_water.count(), host.count())});
  checks.push_back({"bytes to the GPU", m.h2d.bytes.count() == plan.totals.h2d.count() * steps,
                    planned_text(m.h2d, plan.totals.h2d, steps)});
  checks.push_back({"bytes from the GPU", m.d2h.bytes.count() == plan.totals.d2h.count() * steps,
                    planned_text(m.d2h, plan.totals.d2h, steps)});
}

/// Whether `a` is a worse difference than `b`.
bool worse(const Difference& a, const Difference& b) {
  return std::pair(a.relative, a.unequal) > std::pair(b.relative, b.unequal);
}

Check equality_check(const MeasuredDifference& measured, const char* mode) {
  const Difference& d = measured.difference;
  const double tolerance = measured.tolerance;
  Check check{plural(measured.kind), d.finite && d.relative <= tolerance, ""};
  if (tolerance == 0) check.passed = check.passed && d.unequal == 0;
  if (!d.finite) {
    check.detail = "the reference's own values are not finite";
  } else if (d.unequal == 0) {
    check.detail = fmt::format("{} tensors, every bit equal in every run", d.tensors);
  } else {
    check.detail = fmt::format(
        "{} of {} tensors differ; largest difference {:.3g}, relative {:.3g}, at '{}' ({})",
        d.unequal, d.tensors, d.absolute, d.relative, d.worst, mode);
    if (tolerance > 0) check.detail += fmt::format("; {:.3g} relative is allowed", tolerance);
    if (measured.rounding_effect) {
      check.detail +=
          fmt::format(", {:g} times what other rounding moves the host's step by", rounding_margin);
    }
  }
  if (d.ignored > 0) {
    check.detail +=
        fmt::format("; {} elements not compared, whose gradients are rounding alone", d.ignored);
  }
  return check;
}

bool is_read_at_end(ResultKind kind) {
  return kind == ResultKind::parameter || kind == ResultKind::optimizer_state ||
         kind == ResultKind::buffer;
}

/// Checks the losses of the steps before the last: bit by bit, or within the tolerance.
Check check_losses(const StepGraph& graph, const Runs& runs,
                   const std::vector<StepResults>& reference, double tolerance) {
  const std::vector<ResultPlace> places = results_of(graph);
  Check check{"losses on the way", true, ""};
  double largest = 0;
  for (std::size_t i = 0; i < runs.size() && check.passed; ++i) {
    if (run_modes[i].clean || run_modes[i].padded) continue;
    for (std::size_t n = 0; n + 1 < reference.size() && check.passed; ++n) {
      const StepResults& actual = n < runs[i].earlier.size() ? runs[i].earlier[n] : StepResults{};
      const Difference d = difference(graph, places, ResultKind::loss, actual, reference[n]);
      check.passed = d.finite && (tolerance == 0 ? d.unequal == 0 : d.relative <= tolerance);
      largest = std::max(largest, d.relative);
      if (!check.passed) {
        check.detail = fmt::format("of step {}: relative difference {:.3g} ({})", n + 1, d.relative,
                                   run_modes[i].name);
      }
    }
  }
  if (!check.passed) return check;
  check.detail = tolerance == 0 ? fmt::format("of {} steps, every bit equal", reference.size() - 1)
                                : fmt::format("of {} steps, relative difference {:.3g} at most",
                                              reference.size() - 1, largest);
  return check;
}

/// Stores the times of all steps, and the lanes' of the warm step with the median time.
void store_times(const Plan& plan, const std::vector<StepTimes>& by_step, MeasuredRun& measured) {
  measured.times = by_step;
  if (measured.times.empty()) return;
  std::vector<double> seconds;
  for (const StepTimes& step : warm_steps(measured.times)) seconds.push_back(step_seconds(step));
  const double middle = median(seconds, MiddleValue::lower);
  for (const StepTimes& step : warm_steps(measured.times)) {
    if (step_seconds(step) == middle) measured.lanes = lane_seconds(step, plan);
  }
}

std::vector<double> losses_by_step(const StepGraph& graph, const Execution& run) {
  std::vector<double> losses;
  for (const StepResults& results : run.earlier) {
    if (const auto loss = mean_loss(graph, results)) losses.push_back(*loss);
  }
  if (const auto loss = mean_loss(graph, run.results)) losses.push_back(*loss);
  return losses;
}

/// The reference's results, with the elements that only rounding decides in its first step and in
/// its last.
struct Reference {
  const StepGraph& graph;
  std::int64_t batch;
  const std::vector<StepResults>& steps;
  std::array<ElementMasks, 2> rounding_masks_of_ends;

  [[nodiscard]] Difference difference_of(ResultKind kind, const StepResults& actual,
                                         bool of_first) const {
    return difference(graph, results_of(graph), kind, actual,
                      of_first ? steps.front() : steps.back(),
                      rounding_masks_of_ends[of_first ? 0 : 1]);
  }
};

/// How far the reference's results move when the rounding of its kernels is perturbed, by kind of
/// result.
class RoundingEffect {
 public:
  explicit RoundingEffect(const Reference& reference) : reference_(reference) {}

  /// Runs the reference's steps again, at the first call. Errors: a host kernel's.
  Result<double> of(ResultKind kind) {
    while (others_.size() < tries) {
      auto other = run_resident_steps(reference_.graph, reference_.batch,
                                      static_cast<std::int64_t>(reference_.steps.size()),
                                      others_.size() + 1);
      if (!other) return tl::unexpected(std::move(other.error()));
      others_.push_back(*std::move(other));
    }
    double largest = 0;
    for (const std::vector<StepResults>& other : others_) {
      for (const bool of_first : {true, false}) {
        const StepResults& moved = of_first ? other.front() : other.back();
        largest = std::max(largest, reference_.difference_of(kind, moved, of_first).relative);
      }
    }
    return largest;
  }

 private:
  static constexpr std::size_t tries = 2;
  const Reference& reference_;
  std::vector<std::vector<StepResults>> others_;
};

Result<void> check_results(const Runs& runs, const Reference& reference, double tolerance,
                           RunReport& report) {
  RoundingEffect effect(reference);
  for (const ResultKind kind :
       {ResultKind::output, ResultKind::loss, ResultKind::gradient, ResultKind::parameter,
        ResultKind::optimizer_state, ResultKind::buffer}) {
    MeasuredDifference measured{.kind = kind, .difference = {}, .tolerance = tolerance};
    const char* mode = run_modes[0].name;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (run_modes[i].clean && !is_read_at_end(kind)) continue;
      const Difference d = reference.difference_of(kind, runs[i].results, run_modes[i].padded);
      if (i > 0 && !worse(d, measured.difference)) continue;
      measured.difference = d;
      mode = run_modes[i].name;
    }
    if (measured.difference.tensors == 0) continue;
    if (tolerance > 0 && std::isfinite(measured.difference.relative) &&
        measured.difference.relative > tolerance) {
      auto rounding_effect = effect.of(kind);
      if (!rounding_effect) return tl::unexpected(std::move(rounding_effect.error()));
      if (rounding_margin * *rounding_effect > tolerance) {
        measured.rounding_effect = *rounding_effect;
        measured.tolerance = rounding_margin * *rounding_effect;
      }
    }
    report.checks.push_back(equality_check(measured, mode));
    report.measured.differences.push_back(std::move(measured));
  }
  return {};
}

struct Executed {
  Runs runs;
  std::optional<double> waits;  ///< of the clean run
  std::optional<DeviceMemoryUse> memory;
};

Result<Executed> run_all_modes(const Plan& plan, Backend& backend, const RunOptions& options,
                               RunReport& report) {
  Executed executed;
  DeviceMemoryReader memory(backend);
  if (auto ok = memory.before(); !ok) return tl::unexpected(std::move(ok.error()));
  for (std::size_t i = 0; i < run_modes.size(); ++i) {
    const std::int64_t steps = run_modes[i].padded ? 1 : options.steps;
    const CoreWaits waits;
    auto run = execute(plan, backend,
                       {.padded = run_modes[i].padded,
                        .timing = run_modes[i].timing,
                        .clean = run_modes[i].clean,
                        .steps = steps,
                        .stop_at_violation = options.stop_at_violation});
    if (!run) return tl::unexpected(std::move(run.error()));
    report.checks.push_back(completion_check(run_modes[i], *run, plan.nodes.size(), steps));
    executed.runs[i] = std::move(*run);
    if (run_modes[i].clean) executed.waits = waits.share();
    if (i > 0) continue;
    if (auto ok = memory.loaded(); !ok) return tl::unexpected(std::move(ok.error()));
  }
  auto use = memory.with_arenas_and_after(plan);
  if (!use) return tl::unexpected(std::move(use.error()));
  executed.memory = *use;
  report.remarks = backend.remarks();
  return executed;
}

}  // namespace

bool RunReport::passed() const {
  return !checks.empty() &&
         std::all_of(checks.begin(), checks.end(), [](const Check& c) { return c.passed; });
}

// Checks that the plan can be run, runs the reference and then the plan in all modes, and checks in
// this order: residency and canaries, peaks and copied bytes, the device's memory, times, the
// losses on the way, the results.
Result<RunReport> run_plan(const Plan& plan, Backend& backend, const RunOptions& options) {
  RunReport report{.backend = backend.name()};
  report.checks.push_back(check_structure(plan));
  if (!report.passed()) return report;
  const StepGraph& graph = *plan.step.graph;
  if (!graph.kernel_set().executable) {
    return failure(fmt::format("the plan is made of {}'s kernels, which Stowage does not run",
                               to_string(graph.settings.kernels)),
                   hint_of(Cure::stowage_kernels));
  }
  if (const auto missing = missing_kernels(plan, backend.gpu_kernels()); !missing.empty()) {
    return failure(first_texts(missing), "its memory is planned and checked all the same");
  }
  const auto reference = run_resident_steps(graph, plan.step.batch, options.steps);
  if (!reference) return tl::unexpected(reference.error());
  const auto executed = run_all_modes(plan, backend, options, report);
  if (!executed) return tl::unexpected(executed.error());
  const Runs& runs = executed->runs;
  report.checks.push_back(canary_check(runs[padded_mode]));
  report.measured = {.gpu_peak = runs[0].gpu_peak,
                     .gpu_high_water = runs[0].gpu_high_water,
                     .host_high_water = runs[0].host_high_water,
                     .h2d = runs[0].h2d,
                     .d2h = runs[0].d2h,
                     .losses = losses_by_step(graph, runs[0]),
                     .lanes = {},
                     .times = {},
                     .waits = executed->waits,
                     .memory = executed->memory,
                     .differences = {}};
  store_times(plan, runs[clean_mode].times, report.measured);
  check_memory(plan, report.measured, options.steps, report.checks);
  if (executed->memory) {
    std::ranges::move(check_device_memory(plan, *executed->memory),
                      std::back_inserter(report.checks));
  }
  if (options.check_times && !report.measured.times.empty()) {
    const bool emulated = backend.gpu_kernels() == KernelDevice::host;
    report.checks.push_back(
        check_times(plan, report.measured.times, emulated, report.measured.waits));
  }
  if (options.steps > 1 && !graph.losses.empty()) {
    report.checks.push_back(check_losses(graph, runs, *reference, options.tolerance));
  }
  Reference against{graph, plan.step.batch, *reference, {}};
  if (options.tolerance > 0) {
    against.rounding_masks_of_ends = {rounding_masks(graph, reference->front()),
                                      rounding_masks(graph, reference->back())};
  }
  if (auto ok = check_results(runs, against, options.tolerance, report); !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  return report;
}

}  // namespace stowage
