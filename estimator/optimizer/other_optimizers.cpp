// The rows of optimizers that PyTorch does not have: timm's (1.0.31) and transformers' (5.23.0).
#include "estimator/optimizer/rows.hpp"
#include "estimator/optimizer/update_script.hpp"

namespace stowage::optimizers {

OptimizerRow lion() {
  return {.name = "lion",
          .doc = "Lion: one moment, steps of the sign",
          .source = "timm.optim.Lion",
          .settings = {{"learning_rate", 0.0001},
                       {"beta1", 0.9},
                       {"beta2", 0.99},
                       {"weight_decay", 0.0}},
          .state = {{.name = "exp_avg"}},
          .for_loop = lion_for_loop,
          .foreach = lion_foreach,
          .flops_per_element = 8};
}

OptimizerRow lamb() {
  return {.name = "lamb",
          .doc = "LAMB: Adam's step, scaled layer by layer; gradients clipped to a norm over all",
          .source = "timm.optim.Lamb",
          .settings = {{"learning_rate", 0.001},
                       {"beta1", 0.9},
                       {"beta2", 0.999},
                       {"epsilon", 1e-6},
                       {"weight_decay", 0.01},
                       {"max_gradient_norm", 1.0}},
          .state = {{.name = "exp_avg"}, {.name = "exp_avg_sq"}},
          .for_loop = lamb_for_loop,
          .foreach = lamb_foreach,
          .flops_per_element = 22};
}

OptimizerRow transformers_adafactor() {
  using enum StateShape;
  const StateType type = StateType::at_least_32;
  return {
      .name = "adafactor-transformers",
      .doc = "Adafactor, transformers': beta1 > 0 keeps a first moment; learning rate 0: relative",
      .source = "transformers.Adafactor",
      .settings = {{"learning_rate", 0.0},
                   {"beta1", 0.0},
                   {"decay_rate", 0.8},
                   {"clip_threshold", 1.0},
                   {"weight_decay", 0.0}},
      .state = {{.name = "exp_avg",
                 .type = type,
                 .when = "beta1 > 0",
                 .kept = [](const OptimizerSettings& s,
                            const UpdatedTensor&) { return s.beta1 > 0; }},
                {.name = "exp_avg_sq_row",
                 .shape = rows,
                 .type = type,
                 .when = "matrices",
                 .kept = is_matrix},
                {.name = "exp_avg_sq_col",
                 .shape = columns,
                 .type = type,
                 .when = "matrices",
                 .kept = is_matrix},
                {.name = "exp_avg_sq", .type = type, .when = "vectors", .kept = is_vector},
                {.name = "RMS", .shape = scalar, .type = type, .bookkeeping = true}},
      .for_loop = transformers_adafactor_for_loop,
      .usual = OptimizerImplementation::for_loop,
      .makes_state_before_update = true,
      .flops_per_element = 16};
}

}  // namespace stowage::optimizers
