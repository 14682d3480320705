// The size of a library's kernel code for an architecture: with eager loading all of it is in the
// card's memory.
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
  cudnn_inference,  ///< loaded by a forward convolution
  cudnn_training,   ///< loaded in addition by a backward one
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
  int architecture = 0;  ///< whose code runs on the card
};
/// The code of the newest release for `cuda` or an earlier CUDA, or of the oldest release if all
/// are later. Of the architectures of the card's generation up to its own, the one with the most
/// code is taken; if there are none, the nearest one below, else above.
[[nodiscard]] KernelCode kernel_code(KernelLibrary library, const ReleaseVersion& cuda,
                                     double compute_capability);

}  // namespace stowage
