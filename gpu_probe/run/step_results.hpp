// What a step leaves behind, and how far two executions of it are apart.
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

/// A result and when it is to be read: a gradient's or a loss's storage may be given to something
/// else once its last reader is done, so that it is read after the node that writes it last;
/// persistent storages are read when the step is over.
struct ResultPlace {
  StorageId storage;
  ResultKind kind = ResultKind::output;
  DataType type = DataType::float32;
  std::int32_t after = 0;  ///< a node; the number of nodes: when the step is over
};

/// Ordered by (after, storage). In training: losses, gradients, and the persistent storages that
/// the step writes; in inference the output.
[[nodiscard]] std::vector<ResultPlace> results_of(const StepGraph& graph);

/// Contents by StorageId.
using StepResults = std::map<StorageId, std::vector<std::byte>>;

/// The losses alone.
[[nodiscard]] StepResults losses_of(const StepGraph& graph, const StepResults& results);

/// The mean of the losses, one a micro-batch; nullopt: the step has none, or one is missing.
[[nodiscard]] std::optional<double> mean_loss(const StepGraph& graph, const StepResults& results);

struct Difference {
  double absolute = 0;  ///< largest over elements; infinite where one side alone is not finite
  /// Largest over tensors: absolute over the largest magnitude expected in the tensor, or, where
  /// that is less, over small_share of the largest in any of its kind: what is 0 but for rounding
  /// has no size of its own.
  double relative = 0;
  std::string worst;  ///< the storage with the largest relative difference
  std::int64_t tensors = 0;
  std::int64_t unequal = 0;  ///< tensors that differ in at least one bit
  std::int64_t ignored = 0;  ///< elements that were not compared
  bool finite = true;        ///< everything expected is
};
inline constexpr double small_share = 1e-3;

/// The differences of one kind of result. A result that is missing on either side counts as unequal
/// and infinitely far. `ignored`: elements that are not compared, by storage (rounding_alone.hpp).
[[nodiscard]] Difference difference(const StepGraph& graph, const std::vector<ResultPlace>& places,
                                    ResultKind kind, const StepResults& actual,
                                    const StepResults& expected,
                                    const std::map<StorageId, std::vector<bool>>& ignored = {});

/// "gradients".
[[nodiscard]] std::string plural(ResultKind kind);

}  // namespace stowage
