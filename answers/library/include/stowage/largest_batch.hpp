// The largest batch that fits a card, and the one to use.
#pragma once

#include <cstdint>
#include <optional>
#include <stowage/message.hpp>
#include <stowage/model.hpp>
#include <vector>

namespace stowage {

struct LargestBatchQuestion {
  StepSpec step;
  GpuSpec gpu;
  std::optional<std::int64_t> margin_bytes;  ///< that the recommended batch leaves; absent: usual
};

struct BatchPoint {
  std::int64_t batch = 0, device_bytes = 0;
};

struct LargestBatchAnswer {
  std::int64_t largest = 0;      ///< 0: not even one sample fits
  std::int64_t recommended = 0;  ///< leaves the margin, and needs no rescue by the allocator
  std::int64_t largest_device_bytes = 0, recommended_device_bytes = 0;
  std::int64_t available_bytes = 0;
  std::int64_t margin_bytes = 0;
  bool keeps_margin = true;  ///< false: no batch leaves it, and the recommended one leaves less
  bool unlimited = false;    ///< nothing that was tried was too large
  std::vector<BatchPoint> curve;  ///< ascending
  Messages notes;
};

/// Errors: as a FitQuestion's; a step that was recorded at one batch only.
[[nodiscard]] Answered<LargestBatchAnswer> ask(const LargestBatchQuestion& question);

}  // namespace stowage
