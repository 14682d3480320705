// Residency problems in which one or a few storages are a large part of all: a relaxation keeps a
// part of such a storage, a plan keeps or drops it as a whole. Every operation may run on the CPU.
#pragma once

#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct EmbeddingShape {
  int layers = 4;
  std::int64_t table = 512'000'000;      ///< bytes
  std::int64_t weight = 8'000'000;       ///< a layer
  std::int64_t activation = 16'000'000;  ///< a layer's output
};
/// A training step under plain SGD: a look-up in a giant table, layers, and the way back.
[[nodiscard]] ResidencyProblem giant_embedding(const EmbeddingShape& shape);

/// A U-shaped network's training step: on its way down each level halves the bytes and keeps a
/// value for the level on its way up. Operations take no time on either side, so that the choice
/// is between bytes alone. `depth` levels, the largest of `bytes`.
[[nodiscard]] ResidencyProblem u_shape(int depth, std::int64_t bytes);

}  // namespace stowage
