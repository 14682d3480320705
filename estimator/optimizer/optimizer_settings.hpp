// OptimizerSettings: an optimizer's name and its settings that change memory or numbers.
//
// One struct serves every optimizer: a row of the table (optimizer_row.hpp) says which settings it
// has, with which defaults. A setting has one name for all optimizers: PyTorch's `alpha` of RMSprop
// and `rho` of Adadelta are both `smoothing`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stowage {

/// How eager PyTorch runs a step: parameter by parameter (for_loop), with operators over lists of
/// tensors (foreach), or in kernels that do the whole update (fused). `usual`: PyTorch's default.
enum class OptimizerImplementation { usual, for_loop, foreach, fused };

/// Which float32 copies exist beside 16-bit parameters (mixed precision with master weights).
enum class MasterWeights {
  none,
  weights,                ///< the optimizer keeps one of each parameter; gradients are 16-bit
  weights_and_gradients,  ///< and gradients are accumulated in float32 during the step
};

struct OptimizerSettings {
  std::string name = "sgd";  ///< a row's
  double learning_rate = 0.01;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double dampening = 0;
  bool amsgrad = false;
  bool centered = false;
  bool decoupled_weight_decay = false;
  double smoothing = 0.99;
  double learning_rate_decay = 0;
  double momentum_decay = 0.004;
  double decay_rate = 0.8;
  double clip_threshold = 1;
  double max_gradient_norm = 1;
  OptimizerImplementation implementation = OptimizerImplementation::usual;
  MasterWeights master_weights = MasterWeights::none;
  bool operator==(const OptimizerSettings&) const = default;
};

[[nodiscard]] std::string_view to_string(OptimizerImplementation implementation);
[[nodiscard]] std::string_view to_string(MasterWeights master_weights);

}  // namespace stowage
