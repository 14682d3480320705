// Checks the nesting of blocks: its depth, and that no block contains itself.
#pragma once

#include <vector>

#include "estimator/model/model_description.hpp"
#include "estimator/text/mistakes.hpp"

namespace stowage {

inline constexpr int deepest_blocks = 64;  ///< levels of nested block instances

/// Reports blocks that contain themselves (with the cycle) or nest too deep. Marks one block of
/// each cycle `recursive`, so that expansion ends. Linear in the layers of the blocks.
void refuse_recursion(std::vector<Block>& blocks, Mistakes& mistakes);

}  // namespace stowage
