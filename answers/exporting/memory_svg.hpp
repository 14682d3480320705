// A step's memory as a drawing: what is on the GPU while each kernel runs, stacked by class, with
// the peak, what the allocator holds, and what the card leaves.
//
// One SVG of its own, without outside requests, readable on a light and on a dark page.
#pragma once

#include <string>

#include "answers/report/step_memory.hpp"

namespace stowage {

struct MemoryPicture {
  std::string title, subtitle;
  std::string reserved_name;  ///< of the dashed line: "held by PyTorch's allocator"
  Bytes limit;                ///< what the card leaves for it; 0: no line
  std::string limit_name;
};

/// Precondition: the step has nodes.
[[nodiscard]] std::string memory_svg(const MemoryOverStep& memory, const MemoryPicture& picture);

}  // namespace stowage
