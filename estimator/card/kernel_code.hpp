// The kernels' code that a library has for an architecture: what is on the card where modules are
// loaded eagerly.
//
// Read off the fat binaries in the wheels of PyTorch, TensorFlow, cuBLAS and cuDNN
// (tests/reference/kernel_code.py), in whole MiB: allocated sections of all device programs.
#pragma once

#include <span>
#include <string_view>

#include "estimator/base/bytes.hpp"
#include "estimator/card/software_stack.hpp"

namespace stowage {

enum class KernelLibrary {
  pytorch,
  tensorflow,
  cublas,
  cudnn_inference,  ///< what a forward convolution brings
  cudnn_training,   ///< what a backward one brings besides
};

struct ArchitectureCode {
  int architecture = 0;  ///< 86: sm_86
  int mebibytes = 0;
};

struct KernelCodeRow {
  KernelLibrary library;
  std::string_view release;  ///< "PyTorch 1.13.1"
  ReleaseVersion cuda;
  std::span<const ArchitectureCode> code;  ///< by architecture, ascending
};
[[nodiscard]] std::span<const KernelCodeRow> kernel_code_rows();

struct KernelCode {
  Bytes bytes;
  std::string_view release;
  int architecture = 0;  ///< whose code the card takes
};
/// Of the newest release for `cuda` or an earlier one; of the oldest where all are later. The
/// card's architecture is served by the most code of those of its generation up to its own, and
/// where there are none by the nearest below, or above.
[[nodiscard]] KernelCode kernel_code(KernelLibrary library, const ReleaseVersion& cuda,
                                     double compute_capability);

}  // namespace stowage
