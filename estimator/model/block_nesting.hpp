// Blocks within blocks: how deep, and never within themselves.
#pragma once

#include <vector>

#include "estimator/model/model_description.hpp"
#include "estimator/text/mistakes.hpp"

namespace stowage {

inline constexpr int deepest_blocks = 64;  ///< instances within instances

/// Reports blocks that contain themselves (with the chain) or nest too deep, and marks one of each
/// chain `recursive`, so that expansion ends. Linear in the layers of the blocks.
void refuse_recursion(std::vector<Block>& blocks, Mistakes& mistakes);

}  // namespace stowage
