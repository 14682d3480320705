// The kernels that an operator calls: those of its example (operator_example.hpp), lowered for our
// own executor.
#pragma once

#include <string_view>
#include <vector>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/kernel.hpp"

namespace stowage {

/// When a step calls the kernel. `inference`: only inference calls it, as batch normalization with
/// running statistics.
enum class CallTime { forward, backward, inference };
[[nodiscard]] std::string_view to_string(CallTime time);  ///< "forward", ...

struct OperatorKernel {
  CallTime time = CallTime::forward;
  Kernel kernel = Kernel::copy;
  bool operator==(const OperatorKernel&) const = default;
};

/// Each kernel once, in the order of first calls. With other attributes the operator may call other
/// kernels. Empty: the operator makes a view or nothing. Precondition: the row has an example.
[[nodiscard]] std::vector<OperatorKernel> operator_kernels(const OperatorRow& row);

}  // namespace stowage
