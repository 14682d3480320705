// StepResults: what a step leaves behind. Difference: how far two executions of it are apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

enum class ResultKind { output, loss, gradient, parameter, optimizer_state, buffer };

/// A result, and when it is read. The storage of a gradient or a loss may be used for something
/// else once its last reader is done, so it is read after the last node that writes it. A
/// persistent storage is read when the step is over.
struct ResultPlace {
  StorageId storage;
  ResultKind kind = ResultKind::output;
  DataType type = DataType::float32;
  std::int32_t after = 0;  ///< a node; the number of nodes: the end of the step
};

/// Ordered by (after, storage). In training: losses, gradients, and the persistent storages that
/// the step writes. In inference: the output.
[[nodiscard]] std::vector<ResultPlace> results_of(const StepGraph& graph);

/// Contents by StorageId.
using StepResults = std::map<StorageId, std::vector<std::byte>>;

/// Only the losses.
[[nodiscard]] StepResults losses_of(const StepGraph& graph, const StepResults& results);

/// The mean of the losses of all micro-batches. Nullopt: the step has no loss, or one is missing.
[[nodiscard]] std::optional<double> mean_loss(const StepGraph& graph, const StepResults& results);

struct Difference {
  double absolute = 0;  ///< largest over all elements; infinite where only one side is finite
  /// Largest over all tensors. A tensor's is its absolute difference over the largest magnitude
  /// expected in the tensor or, if that is larger, over small_share of the largest magnitude in all
  /// tensors of the kind: a tensor that is 0 except for rounding has no size of its own.
  double relative = 0;
  std::string worst;  ///< the storage with the largest relative difference
  std::int64_t tensors = 0;
  std::int64_t unequal = 0;  ///< tensors that differ in at least one bit
  std::int64_t ignored = 0;  ///< elements that were not compared
  bool finite = true;        ///< everything expected is
};
inline constexpr double small_share = 1e-3;

/// The differences of one kind of result. A result that is missing on either side counts as unequal
/// and infinitely far. `ignored`: elements that are not compared, by storage (rounding_masks.hpp).
[[nodiscard]] Difference difference(const StepGraph& graph, const std::vector<ResultPlace>& places,
                                    ResultKind kind, const StepResults& actual,
                                    const StepResults& expected,
                                    const std::map<StorageId, std::vector<bool>>& ignored = {});

/// "gradients" for ResultKind::gradient.
[[nodiscard]] std::string plural(ResultKind kind);

}  // namespace stowage
