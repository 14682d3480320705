// Levers: the means that a plan may use to keep within its budget.
//
//   operators    forward, loss and backward may run on the CPU (TensorFlow's placement)
//   activations  what forward and backward make may leave the GPU and come back (vDNN)
//   saved        the part of it that autograd alone keeps may leave between forward and backward:
//                what hooks for saved tensors can do (estimator/step/saved_storages.hpp)
//   optimizer    updates may run on the CPU, with their state there (ZeRO-Offload); state and
//                gradients may leave the GPU
//   weights      parameters and buffers may leave the GPU between their uses (streaming)
//   recompute    values of the forward pass may be made again in backward
//
// A storage that only a lever which is off would move stays on the GPU from one use there to the
// next. Where its next use is an operation on the CPU it is copied nevertheless, since that
// operation needs it.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct Levers {
  bool operators = true;
  bool activations = true;
  bool saved = true;
  bool optimizer = true;
  bool weights = true;
  bool recompute = true;
  bool operator==(const Levers&) const = default;
};

/// Reads "activations,optimizer" or "all". Errors: an unknown word, with a suggestion; no word.
[[nodiscard]] Result<Levers> parse_levers(std::string_view text);
/// The text that parse_levers reads.
[[nodiscard]] std::string to_string(const Levers& levers);

}  // namespace stowage
