// OptimizerSettings: which optimizer, and what of its settings changes memory or numbers.
//
// One struct for every optimizer: a row of the table (optimizer_row.hpp) says which of these it
// has, under which defaults. Names are one for one thing: what PyTorch calls `alpha` in RMSprop and
// `rho` in Adadelta is `smoothing` here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stowage {

/// How eager PyTorch runs a step: parameter by parameter, over lists of all parameters, or in
/// kernels that do the whole update. `usual`: what it takes where nothing is asked for.
enum class OptimizerImplementation { usual, for_loop, foreach, fused };

/// Who keeps float32 copies under 16-bit parameters (mixed precision with master copies).
enum class MasterWeights {
  none,
  weights,                ///< the optimizer, of each parameter; gradients stay as they are
  weights_and_gradients,  ///< and the gradients are added up in float32 for the whole step
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
