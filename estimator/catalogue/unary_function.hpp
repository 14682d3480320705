// The table of element-by-element functions of one tensor: what each saves for the backward pass,
// and what its in-place form does. The catalogue's rows of these functions are made from it.
//
// The table (unary_table.cpp) says what PyTorch 2.15 does (tools/autograd/derivatives.yaml;
// measured by tests/reference/activation_saved.py and function_saved.py). Our executor saves the
// same, input or result, except that it saves the result wherever the gradient follows from that.
// It works in place where it saves the result.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/kernel.hpp"

namespace stowage {

struct UnaryFunction {
  /// What autograd saves. `nothing`: a step function, whose gradient is zero.
  enum class Saves { input, result, nothing };
  /// What autograd saves in the in-place form. If the derivative needs the input, PyTorch saves a
  /// copy of it, so that no memory is saved.
  enum class InPlace { none, result, copy_of_input };

  std::string_view name;  ///< the operator's: "silu"
  std::string_view doc;
  Saves saves = Saves::input;
  InPlace in_place = InPlace::none;
  /// PyTorch saves the input, but the gradient follows from the result too: relu6's gradient is 0
  /// where the result is 0 or 6.
  bool gradient_from_result = false;
  std::int64_t flops = 1;  ///< per element
  AutocastClass autocast = AutocastClass::as_is;
  std::vector<AttributeSpec> attributes = {};
  /// Temporaries of PyTorch's backward pass if it is written in several operators: tensors of the
  /// result's type, masks of one byte per element, and scalars.
  std::int64_t backward_tensors = 0, backward_masks = 0, backward_scalars = 0;
  /// The gradient has the memory order of the saved tensor, which is the first operand in PyTorch's
  /// backward pass; else that of the output's gradient.
  bool gradient_has_saved_order = false;
  std::string_view function = {};  ///< the kernels' name for it; empty: `name`
  Kernel forward = Kernel::unary_forward;
  Kernel backward = Kernel::unary_backward;
};

/// In the order of the documentation.
[[nodiscard]] const std::vector<UnaryFunction>& unary_functions();

}  // namespace stowage
