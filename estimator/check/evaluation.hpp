// Evaluation beside training: an inference step in the process that trains, between two training
// steps, with the training's state still resident.
//
// What stays on the card then: optimizer state, gradients where zero_grad keeps them, and what the
// training script's variables hold (the last batch's inputs, `output` and `loss`). Parameters and
// buffers are the evaluation's own. A large evaluation set is run in chunks; how large they may be
// is found as a training batch is (batch_search.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/check/batch_search.hpp"
#include "estimator/check/check.hpp"

namespace stowage {

/// What a training step leaves on the card besides parameters and buffers, one row a class.
[[nodiscard]] std::vector<RuntimeBuffer> left_by_training(const SizedStep& training,
                                                          Runtime runtime);

struct EvaluationReport {
  std::int64_t batch = 0;
  CheckReport step;
  LargestBatch chunk;  ///< the largest evaluation batch that fits
};

/// `graph` is the same model lowered for inference. Errors: as size_step's.
[[nodiscard]] Result<EvaluationReport> check_evaluation(const SizedStep& training,
                                                        std::shared_ptr<const StepGraph> graph,
                                                        std::int64_t batch, const Card& card,
                                                        CheckSettings settings,
                                                        WorkspaceSource& source);

/// Training and evaluation as one report: the larger of the two peaks counts, both must fit, and
/// the evaluation is a phase of its own.
[[nodiscard]] CheckReport with_evaluation(CheckReport training, const EvaluationReport& evaluation);

}  // namespace stowage
