// The ATen calls that this program knows: as which of its kernels each runs, and what it allocates
// within itself.
//
// What a kernel allocates stands in estimator/pytorch, from where the lowering of descriptions has
// it too; here is which call that is, and where its arguments are. PyTorch 2.15.
#pragma once

#include <cstdint>
#include <string_view>

#include "estimator/recorded/call_completion.hpp"

namespace stowage {

/// Emits what PyTorch runs for the call. False: this call of the kernel is not known.
using CompleteCall = bool (*)(CallCompletion& completion);

struct AtenRow {
  std::string_view name;  ///< without overload and without the underscore of in-place calls
  CompleteCall complete;
  // Of calls that are one kernel of ours, of which nothing but the order of arguments is to be
  // said:
  Kernel kernel = Kernel::foreign;
  /// The schema's names in the order of the kernel's signature; what is not given is left out.
  std::string_view arguments = {};
  std::int64_t flops = 0;         ///< an element of the first argument
  std::string_view leading = {};  ///< decides the layout; empty: the first argument
};

/// Null: nothing of it is to be completed.
[[nodiscard]] const AtenRow* find_aten(std::string_view kernel);

/// Whether it is known that the call allocates nothing but its results (known_calls.cpp): calls
/// that go element by element, reductions, copies.
[[nodiscard]] bool allocates_results_alone(std::string_view kernel);

// Rules (convolution_calls.cpp, product_calls.cpp, attention_calls.cpp, indexed_calls.cpp,
// recurrent_calls.cpp, plain_calls.cpp).
bool complete_plain(CallCompletion& completion);
bool complete_batch_norm(CallCompletion& completion);
bool complete_convolution(CallCompletion& completion);
bool complete_convolution_backward(CallCompletion& completion);
bool complete_product(CallCompletion& completion);
bool complete_biased_product(CallCompletion& completion);
bool complete_linear(CallCompletion& completion);
bool complete_attention(CallCompletion& completion);
bool complete_attention_backward(CallCompletion& completion);
bool complete_embedding(CallCompletion& completion);
bool complete_embedding_backward(CallCompletion& completion);
bool complete_index_put(CallCompletion& completion);
bool complete_sort(CallCompletion& completion);
bool complete_safe_softmax(CallCompletion& completion);
bool complete_roll(CallCompletion& completion);
bool complete_cudnn_rnn(CallCompletion& completion);
bool complete_cudnn_rnn_backward(CallCompletion& completion);

}  // namespace stowage
