// Which kernels an operator calls: those of its example (catalogue/operator_example.hpp), lowered
// for our own executor.
#pragma once

#include <string_view>
#include <vector>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/kernel.hpp"

namespace stowage {

/// When a step calls the kernel; `inference` where only an inference does, as batch normalization
/// by its running statistics.
enum class CallTime { forward, backward, inference };
[[nodiscard]] std::string_view to_string(CallTime time);  ///< "forward", ...

struct OperatorKernel {
  CallTime time = CallTime::forward;
  Kernel kernel = Kernel::copy;
  bool operator==(const OperatorKernel&) const = default;
};

/// Each once, in the order of their first calls; other settings of its attributes may call others.
/// Empty where the operator makes a view or nothing at all. Precondition: the row has an example.
[[nodiscard]] std::vector<OperatorKernel> operator_kernels(const OperatorRow& row);

}  // namespace stowage
