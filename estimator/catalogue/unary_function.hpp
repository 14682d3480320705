// The functions of one tensor that work element by element, as a table: what each keeps for the
// backward pass, and what its in-place form does. Rows of the catalogue are made from it.
//
// The table (unary_table.cpp) says what PyTorch 2.15 does (tools/autograd/derivatives.yaml;
// measured by tests/reference/activation_saved.py and function_saved.py). Our executor saves the
// same side, input or result, but the result where the gradient follows from that as well; and
// works in place where it saves the result.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/kernel.hpp"

namespace stowage {

struct UnaryFunction {
  /// `nothing`: the function is constant between its steps, and its gradient zeros.
  enum class Saves { input, result, nothing };
  /// What autograd saves when it works in place. Where its derivative asks for the input, PyTorch
  /// saves a copy of it, so that nothing is won.
  enum class InPlace { none, result, copy_of_input };

  std::string_view name;  ///< the operator's: "silu"
  std::string_view doc;
  Saves saves = Saves::input;
  InPlace in_place = InPlace::none;
  bool result_tells = false;  ///< PyTorch saves the input, but the gradient needs no more of it
                              ///< than the result says: relu6's is 0 at 0 and at 6
  std::int64_t flops = 1;     ///< an element
  AutocastClass autocast = AutocastClass::as_is;
  std::vector<AttributeSpec> attributes = {};
  /// What PyTorch's backward makes and drops on the way where it is written in operators: tensors
  /// of the result's type, masks of a byte an element, and scalars.
  std::int64_t backward_tensors = 0, backward_masks = 0, backward_scalars = 0;
  /// The gradient lies in memory as what was saved, which PyTorch's backward names first; else as
  /// the gradient that arrives.
  bool gradient_lies_as_saved = false;
  std::string_view function = {};  ///< what the kernels call it; empty: `name`
  Kernel forward = Kernel::unary_forward;
  Kernel backward = Kernel::unary_backward;
};

/// In the order of the documentation.
[[nodiscard]] const std::vector<UnaryFunction>& unary_functions();

}  // namespace stowage
