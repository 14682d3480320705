// Does a step fit a card?
#pragma once

#include <cstdint>
#include <optional>
#include <stowage/memory.hpp>
#include <stowage/message.hpp>
#include <stowage/model.hpp>

namespace stowage {

struct FitQuestion {
  StepSpec step;
  GpuSpec gpu;
  std::optional<std::int64_t> batch;  ///< absent: a step file's own, or 1
};

struct FitAnswer {
  bool fits = false;
  std::int64_t batch = 1;
  MemoryPeak peak;
  /// Where it does not fit: the largest batch that does, 0 where not even 1 does; absent where it
  /// fits, or where no batch would help.
  std::optional<std::int64_t> largest_batch;
  Messages notes;
};

/// Errors: what the question names cannot be found or read, or does not go together.
[[nodiscard]] Answered<FitAnswer> ask(const FitQuestion& question);

}  // namespace stowage
