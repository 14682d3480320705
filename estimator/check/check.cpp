#include "estimator/check/check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/memory/partition.hpp"
#include "estimator/runtime/runtime_process.hpp"
#include "estimator/step/offloaded_bytes.hpp"

namespace stowage {

namespace {

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
  Bytes bytes = class_bytes(step, StorageClass::parameter, granularity) +
                class_bytes(step, StorageClass::buffer, granularity);
  if (with_state) bytes += class_bytes(step, StorageClass::optimizer_state, granularity);
  return bytes;
}

MemoryRules rules_of(const StepOnCard& on_card, const RuntimeRun& run) {
  return {.granularity = runtime_granularity(on_card.settings.runtime),
          .engine = run.process().engine,
          .buffers = on_card.buffers};
}

std::vector<PhasePeak> phases(const StepOnCard& on_card, const RuntimeRun& run,
                              Bytes steady_tensors) {
  const SizedStep& step = on_card.step;
  const bool keras = traits(on_card.settings.runtime).is_keras;
  const Bytes outside = outside_allocator(*step.graph, on_card.card, on_card.settings);
  const ReservedBytes reserved = run.reserved();
  MemoryRules rules = rules_of(on_card, run);
  std::vector<PhasePeak> result;
  result.push_back({"after loading", loaded_bytes(step, rules.granularity, keras),
                    reserved.loaded + context_bytes(on_card.card, on_card.settings)});
  if (step.graph->settings.mode == Mode::train) {
    rules.step = keras ? StepNumber::steady : StepNumber::first;
    result.push_back({"first step", peak(live_bytes(step, rules, on_card.touches)).bytes,
                      reserved.first_step + outside});
  }
  result.push_back({"steady steps", steady_tensors, reserved.most + outside});
  return result;
}

std::vector<RuntimeRow> runtime_rows(const StepOnCard& on_card, const RuntimeRun& run,
                                     Bytes tensor_bytes) {
  const CheckSettings& settings = on_card.settings;
  const auto allocator_rows = process_of(settings.runtime).allocator_rows;
  std::vector<RuntimeRow> rows;
  if (allocator_rows != nullptr && run.reserved().most != tensor_bytes) {
    rows = allocator_rows(run, settings, tensor_bytes);
  }
  if (traits(settings.runtime).has_process) rows.push_back(context_row(on_card.card, settings));
  const std::vector<RuntimeRow> libraries =
      library_rows(*on_card.step.graph, on_card.card, settings);
  rows.insert(rows.end(), libraries.begin(), libraries.end());
  return rows;
}

std::string culprit_of(const CheckReport& report, const StepOnCard& on_card) {
  if (report.fits) return {};
  if (report.run.failure && report.run.failure->at.library) {
    return fmt::format("{} finds no room beside what {} has taken, {}",
                       report.run.failure->at.library->library.name,
                       traits(on_card.settings.runtime).title,
                       format_bytes(report.reserved_bytes()));
  }
  if (process_of(on_card.settings.runtime).limit_names_cause && on_card.limit < Bytes()) {
    return fmt::format(
        "the CUDA context and the libraries' kernels alone take {}, of which {} are there",
        format_bytes(outside_allocator(*on_card.step.graph, on_card.card, on_card.settings)),
        format_bytes(std::max(report.available_bytes, Bytes())));
  }
  std::string culprit =
      fmt::format("{} needs {} at once", report.peak_at(), format_bytes(report.footprint.total));
  if (report.footprint.rows.empty()) return culprit;  // a step without tensors
  const FootprintRow& largest = report.footprint.rows.front();
  return culprit + fmt::format("; its largest tensor is {} ({})",
                               name_of(report.footprint, largest), format_bytes(largest.bytes));
}

CheckReport report_of(RuntimeRun run, const StepOnCard& on_card) {
  const SizedStep& step = on_card.step;
  const CheckSettings& settings = on_card.settings;
  CheckReport report;
  report.footprint = peak_footprint(step, rules_of(on_card, run), on_card.touches);
  report.device_bytes =
      run.reserved().most + outside_allocator(*step.graph, on_card.card, settings);
  report.runtime_rows = runtime_rows(on_card, run, report.tensor_bytes());
  report.phases = phases(on_card, run, report.tensor_bytes());
  report.host_bytes = std::ssize(run.replicas) * class_bytes(step, StorageClass::input) +
                      Bytes(step.graph->host_state_bytes) +
                      Bytes(offloaded_bytes(*step.graph).at(step.batch));
  report.host_buffers = host_buffers(*step.graph);
  for (const HostBuffer& buffer : report.host_buffers) report.host_bytes += Bytes(buffer.bytes);
  report.managed_bytes = Bytes(step.graph->managed_state_bytes);
  report.total_bytes = on_card.card.cuda_total;
  report.available_bytes = on_card.card.cuda_total - settings.in_use - settings.reserve;
  report.headroom = report.available_bytes - report.device_bytes;
  report.fallbacks = fallbacks(step, run.process().engine);
  report.workspace_origin = step.workspace_origin;
  report.run = std::move(run);
  // A pool may be too small, and a fraction too low, beside plenty of free memory.
  report.fits = !report.run.failure && report.headroom >= Bytes();
  report.culprit = culprit_of(report, on_card);
  return report;
}

}  // namespace

CheckReport check(const SizedStep& step, const Card& card, const CheckSettings& settings) {
  const StepOnCard on_card(step, card, settings);
  return report_of(process_of(settings.runtime).run(on_card), on_card);
}

bool completes(const SizedStep& step, const Card& card, const CheckSettings& settings) {
  return process_of(settings.runtime).completes(StepOnCard(step, card, settings));
}

}  // namespace stowage
