// PyTorch's own step of the same model, by bench/validate/pytorch_step.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "estimator/base/bytes.hpp"

namespace stowage::validate_bench {

struct PytorchStep {
  std::string python;  ///< with torch; "": PyTorch is not asked
  std::string model;
  std::int64_t batch = 0;
  std::optional<std::int64_t> seq;
  bool offload = false;         ///< saved tensors
  std::optional<Bytes> memory;  ///< the allocator's limit
};

/// "0.123 s", "out-of-memory", "missing transformers"; "-" where it is not asked or says nothing.
[[nodiscard]] std::string pytorch_seconds(const PytorchStep& step);

}  // namespace stowage::validate_bench
