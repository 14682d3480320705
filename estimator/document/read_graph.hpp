// Reads a step file's graphs: first the tables, then the rows that refer to them.
#pragma once

#include <vector>

#include "estimator/document/fields.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

// Larger graphs are refused before they are built: a short file can stand for a huge graph, since
// it writes a repeated micro-batch once.
inline constexpr std::int64_t most_nodes = 1'000'000;
inline constexpr std::int64_t most_storages = 4'000'000;
inline constexpr std::int64_t most_arguments = 8'000'000;

/// The tables that both graphs of a file share.
struct StepTables {
  std::vector<Origin> origins;
  std::vector<Shape> shapes;
  std::vector<TensorView> layouts;  ///< views without a storage
  std::vector<Attributes> attributes;
  std::vector<ConvolutionCall> convolutions;
  std::size_t parameters = 0;
};

// Each throws Refusal.
[[nodiscard]] std::vector<Origin> read_origins(const JsonValue& list);
[[nodiscard]] std::vector<Shape> read_shapes(const JsonValue& list);
[[nodiscard]] std::vector<TensorView> read_layouts(const JsonValue& list,
                                                   const std::vector<Shape>& shapes);
[[nodiscard]] std::vector<Attributes> read_attributes(const JsonValue& list,
                                                      const std::vector<Shape>& shapes);
[[nodiscard]] std::vector<ConvolutionCall> read_convolutions(const JsonValue& list,
                                                             const std::vector<Shape>& shapes);
/// `what` is "the step" or "the evaluation". All ids in the result are in range;
/// check_step_graph.hpp checks the rest.
[[nodiscard]] StepGraph read_graph(const JsonValue& object, std::string_view what,
                                   const StepTables& tables, const LoweringSettings& settings);

/// The shape with that number, as a tensor's: its number of elements must fit into 64 bits.
[[nodiscard]] const Shape& tensor_shape(const JsonValue& number, const std::vector<Shape>& shapes);

/// An index into a table of `count` rows.
[[nodiscard]] std::size_t index_of(const JsonValue& value, std::string_view what,
                                   std::size_t count);

}  // namespace stowage
