#include "estimator/memory/zero_estimate.hpp"

namespace stowage {

double zero_paper_bytes(double parameters, const DataParallel& parallel, const StateBytes& bytes) {
  const double share = 1.0 / parallel.gpus;
  return parameters * (bytes.parameters * (parallel.shares_parameters() ? share : 1) +
                       bytes.gradients * (parallel.shares_gradients() ? share : 1) +
                       bytes.optimizer_state * (parallel.shares_state() ? share : 1));
}

double deepspeed_zero2_bytes(double parameters, int gpus) {
  return 4 * parameters + 16 * parameters / gpus;
}

double deepspeed_zero3_bytes(double parameters, double largest_layer, int gpus) {
  return 4 * largest_layer + 18 * parameters / gpus;
}

}  // namespace stowage
