// Expansion of a description: instantiates blocks, unrolls repetitions and leaves out layers whose
// `when` is 0. The result is a flat list of operators in the order of the description, each with
// its inputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/model/model_description.hpp"
#include "estimator/text/mistakes.hpp"

namespace stowage {

/// Counted before they are made: every layer in every instance of its block and repetition. A
/// training step takes 4 to 20 KB for each.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION  // keeps fuzzing fast
inline constexpr std::int64_t most_operators = 2'000;
#else
inline constexpr std::int64_t most_operators = 130'000;
#endif
inline constexpr std::int64_t most_repeats = 1'000'000;

/// Where a tensor comes from.
struct TensorSource {
  enum class Kind : std::uint8_t { model_input, operator_output, unknown };
  Kind kind = Kind::unknown;
  std::int32_t index = -1;   ///< of the model input or of the operator
  std::int32_t output = -1;  ///< output of the operator; -1: its only one
};

struct ExpandedOperator {
  const LayerEntry* entry = nullptr;
  std::string name;     ///< "layer1.0.conv1"
  std::string path;     ///< see Operator::path
  int prefix = 0;       ///< length of the name before the layer's own part, "layer1.0."
  bool broken = false;  ///< a mistake was reported; its outputs are unknown
  bool frozen = false;
  std::optional<DataType> type;  ///< of its parameters; none: the model's own
  int region = -1;               ///< the checkpointed region, see Operator::region
  Attributes attributes;         ///< if the entry has settings; else its constants
  std::vector<TensorSource> inputs;
};

struct ExpandedModel {
  std::vector<ExpandedOperator> operators;
  std::vector<TensorSource> outputs;  ///< of the model's scope
  std::vector<int> losses;            ///< numbers of the losses' operators
};

/// Precondition: `description` outlives the result, which points into it.
[[nodiscard]] ExpandedModel expand(const ModelDescription& description, Mistakes& mistakes);

}  // namespace stowage
