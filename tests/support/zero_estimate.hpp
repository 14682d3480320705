// Formulas for a model's states under ZeRO that others publish, to set beside ours.
#pragma once

#include <cstdint>

#include "estimator/step/data_parallel.hpp"

namespace stowage::testing {

/// Bytes a parameter of the three states. The default is mixed precision with Adam: parameters and
/// gradients in 16 bits; a 32-bit copy and two moments.
struct StateBytes {
  double parameters = 2;
  double gradients = 2;
  double optimizer_state = 12;
};

/// Bytes on each GPU (Rajbhandari et al. 2020, figure 1). 7.5e9 parameters on 64 GPUs: 120e9,
/// 31.4e9, 16.6e9 and 1.9e9 in stages 0 to 3.
[[nodiscard]] inline double zero_paper_bytes(double parameters, const DataParallel& parallel,
                                             const StateBytes& bytes = {}) {
  const double share = 1.0 / parallel.gpus;
  return parameters * (bytes.parameters * (parallel.shares_parameters() ? share : 1) +
                       bytes.gradients * (parallel.shares_gradients() ? share : 1) +
                       bytes.optimizer_state * (parallel.shares_state() ? share : 1));
}

/// DeepSpeed's estimate_zero2_model_states_mem_needs and estimate_zero3_model_states_mem_needs
/// (deepspeed/runtime/zero/stage_1_and_2.py and stage3.py, 0.15), without offload: bytes on each
/// GPU. `largest_layer`: parameters of the largest layer, which stage 3 gathers.
[[nodiscard]] inline double deepspeed_zero2_bytes(double parameters, int gpus) {
  return 4 * parameters + 16 * parameters / gpus;
}
[[nodiscard]] inline double deepspeed_zero3_bytes(double parameters, double largest_layer,
                                                  int gpus) {
  return 4 * largest_layer + 18 * parameters / gpus;
}

}  // namespace stowage::testing
