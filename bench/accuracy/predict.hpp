// What Stowage says about a job.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "bench/accuracy/measurement.hpp"
#include "estimator/check/check.hpp"
#include "estimator/step/step_graph.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"

namespace stowage::accuracy {

/// The sheets are of 2022 and 2023 and do not record their software: the last CUDA without lazy
/// loading.
inline constexpr SoftwareStack software_of_the_time{{11, 6}, ModuleLoading::eager};

/// MiB. `outside` is context and libraries as shipped: configs/gpus, or what the job's machine was
/// measured to take.
struct Prediction {
  double tensors = 0;
  double reserved = 0;
  double outside = 0;
  double outside_eager = 0;  ///< the same with software_of_the_time; nothing measured
  double total = 0;          ///< the card's CUDA total
  WorkspaceOrigin origin = WorkspaceOrigin::none;

  [[nodiscard]] double device() const { return reserved + outside; }
};

/// Keeps lowered steps and cuDNN's answers between jobs. Not thread-safe.
class Predictor {
 public:
  /// `configs`: the folder with models/ and gpus/.
  explicit Predictor(std::string configs);

  /// Throws std::runtime_error with the program's own words where a job is refused.
  [[nodiscard]] Prediction predict(const Job& job, std::optional<double> context_mib);

  /// Whether the job completes on its card.
  [[nodiscard]] bool fits(const Job& job, double context_mib);

 private:
  [[nodiscard]] CheckReport report(const Job& job, std::optional<double> context_mib);
  [[nodiscard]] const Card& card_of(const Job& job);
  [[nodiscard]] std::shared_ptr<const StepGraph> graph_of(const Job& job, const Card& card);
  [[nodiscard]] WorkspaceSource& workspaces(const std::string& gpu, const Card& card);

  std::string configs_;
  std::map<std::string, Card> cards_;
  std::map<std::string, std::shared_ptr<const StepGraph>> graphs_;
  std::map<std::string, std::unique_ptr<WorkspaceSource>> sources_;
};

}  // namespace stowage::accuracy
