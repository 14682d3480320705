#include "estimator/check/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stowage {

namespace {

bool outlives_step(const Storage& storage, const ScriptHold& hold) {
  switch (storage.persistence) {
    case Persistence::persistent:
      return storage.storage_class != StorageClass::parameter &&
             storage.storage_class != StorageClass::buffer;
    case Persistence::transient:
    case Persistence::from_host:
      return hold.outlives_step();
  }
  return false;
}

std::string_view name_of(StorageClass storage_class) {
  switch (storage_class) {
    case StorageClass::optimizer_state:
      return "training's optimizer state";
    case StorageClass::gradient:
      return "training's gradients";
    case StorageClass::input:
      return "training's last inputs";
    default:
      return "training's last results";
  }
}

}  // namespace

std::vector<RuntimeBuffer> left_by_training(const SizedStep& training, Runtime runtime) {
  const Bytes granularity = runtime_granularity(runtime);
  std::array<Bytes, storage_class_count> by_class{};
  for (std::size_t i = 0; i < training.graph->storages.size(); ++i) {
    const Storage& storage = training.graph->storages[i];
    const ScriptHold& hold = training.graph->script_holds.of(StorageId::of(i));
    if (!outlives_step(storage, hold)) continue;
    by_class[static_cast<std::size_t>(storage.storage_class)] +=
        round_up(training.storage_bytes[i], granularity);
  }
  std::vector<RuntimeBuffer> left;
  for (int c = 0; c < storage_class_count; ++c) {
    const Bytes bytes = by_class[static_cast<std::size_t>(c)];
    if (bytes == Bytes()) continue;
    const auto storage_class = static_cast<StorageClass>(c);
    left.push_back({std::string(name_of(storage_class)), bytes, storage_class});
  }
  return left;
}

Result<EvaluationReport> check_evaluation(const SizedStep& training,
                                          std::shared_ptr<const StepGraph> graph,
                                          std::int64_t batch, const Card& card,
                                          CheckSettings settings, WorkspaceSource& source) {
  settings.resident = left_by_training(training, settings.runtime);
  const Result<SizedStep> step = size_step(graph, batch, source);
  if (!step) return tl::unexpected(step.error());
  EvaluationReport report{.batch = batch, .step = check(*step, card, settings)};
  const auto chunk = look_for_largest(std::move(graph), card, settings, source);
  if (!chunk) return tl::unexpected(chunk.error());
  report.chunk = *chunk;
  return report;
}

CheckReport with_evaluation(CheckReport training, const EvaluationReport& evaluation) {
  std::vector<PhasePeak> phases = training.phases;
  phases.push_back({fmt::format("evaluation of {}", evaluation.batch),
                    evaluation.step.tensor_bytes(), evaluation.step.device_bytes});
  const bool evaluation_counts = evaluation.step.device_bytes > training.device_bytes;
  const Bytes host = std::max(training.host_bytes, evaluation.step.host_bytes);
  const bool fits = training.fits && evaluation.step.fits;
  std::vector<EngineFallback> fallbacks = training.fallbacks;
  fallbacks.insert(fallbacks.end(), evaluation.step.fallbacks.begin(),
                   evaluation.step.fallbacks.end());
  CheckReport report = evaluation_counts ? evaluation.step : std::move(training);
  report.phases = std::move(phases);
  report.host_bytes = host;
  report.fits = fits;
  report.fallbacks = std::move(fallbacks);
  return report;
}

}  // namespace stowage
