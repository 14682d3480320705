// The step file's words for enumerations that are printed nowhere else, and lists of all values.
#pragma once

#include <array>
#include <string_view>

#include "estimator/base/data_type.hpp"
#include "estimator/optimizer/optimizer_settings.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

[[nodiscard]] constexpr std::string_view to_string(Persistence persistence) {
  constexpr std::array<std::string_view, 3> names{"transient", "persistent", "from_host"};
  return names[static_cast<std::size_t>(persistence)];
}

[[nodiscard]] constexpr std::string_view to_string(ConvolutionCall::Direction direction) {
  constexpr std::array<std::string_view, 3> names{"forward", "backward_data", "backward_filter"};
  return names[static_cast<std::size_t>(direction)];
}

[[nodiscard]] constexpr std::string_view to_string(ScriptVariable::Kind kind) {
  constexpr std::array<std::string_view, 3> names{"input", "result", "first_gradient"};
  return names[static_cast<std::size_t>(kind)];
}

/// Whether a parameter is trained, frozen or a buffer: the last field of its row.
enum class ParameterKind { trained, frozen, buffer };
[[nodiscard]] constexpr std::string_view to_string(ParameterKind kind) {
  constexpr std::array<std::string_view, 3> names{"trained", "frozen", "buffer"};
  return names[static_cast<std::size_t>(kind)];
}

// All values of an enumeration, for readers.
inline constexpr std::array persistences{Persistence::transient, Persistence::persistent,
                                         Persistence::from_host};
inline constexpr std::array convolution_directions{ConvolutionCall::Direction::forward,
                                                   ConvolutionCall::Direction::backward_data,
                                                   ConvolutionCall::Direction::backward_filter};
inline constexpr std::array script_variable_kinds{ScriptVariable::Kind::input,
                                                  ScriptVariable::Kind::result,
                                                  ScriptVariable::Kind::first_gradient};
inline constexpr std::array parameter_kinds{ParameterKind::trained, ParameterKind::frozen,
                                            ParameterKind::buffer};
inline constexpr std::array modes{Mode::train, Mode::inference};
inline constexpr std::array phases{Phase::forward, Phase::loss, Phase::backward, Phase::update};
inline constexpr std::array zero_grads{ZeroGrad::to_none, ZeroGrad::to_zero};
inline constexpr std::array tensor_layouts{TensorLayout::contiguous, TensorLayout::channels_last};
inline constexpr std::array optimizer_implementations{
    OptimizerImplementation::usual, OptimizerImplementation::for_loop,
    OptimizerImplementation::foreach, OptimizerImplementation::fused};
inline constexpr std::array master_weight_kinds{MasterWeights::none, MasterWeights::weights,
                                                MasterWeights::weights_and_gradients};
inline constexpr auto storage_classes = [] {
  std::array<StorageClass, storage_class_count> classes{};
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<StorageClass>(i);
  return classes;
}();

}  // namespace stowage
