#include "estimator/rewrite/lower_step.hpp"

#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/step/lower.hpp"

namespace stowage {

Result<StepGraph> lower_step(const ModelGraph& model, const LoweringSettings& settings) {
  LoweringSettings one = settings;
  one.micro_batches = 1;
  return lower(model, one).and_then([&](StepGraph&& step) {
    return with_micro_batches(std::move(step), settings.micro_batches);
  });
}

}  // namespace stowage
