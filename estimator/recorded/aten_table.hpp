// The table of known ATen calls: the kernels that each becomes, and the memory that it allocates
// internally.
//
// The sizes of internal allocations are in estimator/pytorch, which the lowering of descriptions
// uses too; this table maps calls and their arguments to them. PyTorch 2.15.
#pragma once

#include <cstdint>
#include <string_view>

#include "estimator/recorded/call_completion.hpp"

namespace stowage {

/// Emits the kernels that PyTorch runs for the call. False: this form of the call is not known.
using CompleteCall = bool (*)(CallCompletion& completion);

struct AtenRow {
  std::string_view name;  ///< schema_name(): without overload and in-place underscore
  CompleteCall complete;
  // For calls that become a single kernel of ours, for which only the order of arguments must be
  // given:
  Kernel kernel = Kernel::foreign;
  /// The schema's argument names in the order of the kernel's signature; arguments that were not
  /// given are left out.
  std::string_view arguments = {};
  std::int64_t flops = 0;         ///< per element of the first argument
  std::string_view leading = {};  ///< argument that decides the layout; empty: the first one
};

/// Null: the table does not have the call.
[[nodiscard]] const AtenRow* find_aten(std::string_view kernel);

/// Whether the call is known to allocate only its results (known_calls.cpp): element-by-element
/// calls, reductions, copies.
[[nodiscard]] bool allocates_only_results(std::string_view kernel);

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
bool complete_softmax_backward(CallCompletion& completion);
bool complete_roll(CallCompletion& completion);
bool complete_cudnn_rnn(CallCompletion& completion);
bool complete_cudnn_rnn_backward(CallCompletion& completion);

}  // namespace stowage
