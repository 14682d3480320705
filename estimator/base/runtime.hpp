// Runtime: who runs the step.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "estimator/base/bytes.hpp"
#include "estimator/base/kernel_set.hpp"

namespace stowage {

enum class Runtime {
  ideal,       ///< tensor bytes alone: no rounding, no context
  stowage,     ///< our executor: one static arena, and the context
  pytorch,     ///< eager PyTorch: its caching allocator, cuBLAS's workspaces, the context
  tensorflow,  ///< TensorFlow 2 with Keras: its BFC allocator, the context
  theano,      ///< Keras over Theano: CNMeM or libgpuarray's cache, the context
};
inline constexpr std::array runtimes{Runtime::ideal, Runtime::stowage, Runtime::pytorch,
                                     Runtime::tensorflow, Runtime::theano};
[[nodiscard]] std::string_view to_string(Runtime runtime);
[[nodiscard]] std::optional<Runtime> find_runtime(std::string_view name);
/// TensorFlow's and Theano's graphs are near our own executor's (docs/tensorflow.md and
/// docs/theano.md say where they differ).
[[nodiscard]] KernelSet kernel_set_of(Runtime runtime);
/// Its kernels write over an argument that nothing needs any more, where they can; the others make
/// room for every result that they are not told to write in place.
[[nodiscard]] bool works_in_place(Runtime runtime);
/// Keras's: the optimizer's variables are made before the first step, so that all are alike.
[[nodiscard]] bool is_keras(Runtime runtime);
/// Plans are made for it: it can be told where each tensor goes, or kernels run as its do.
[[nodiscard]] bool is_planned(Runtime runtime);
/// Itself, or the planned one that has the same kernels.
[[nodiscard]] Runtime planned_in_place_of(Runtime runtime);
/// The multiple to which the runtime rounds a tensor's bytes.
[[nodiscard]] Bytes runtime_granularity(Runtime runtime);

}  // namespace stowage
