// GraphInputs: the inputs of an ONNX graph, and the values of its named dimensions.
//
// A dimension is the batch if its name says so (batch, N, bs, ...), or if it is the first of an
// input and has no name that says otherwise; the sequence if its name says so (seq, sequence,
// length, tokens, ...), or if it is the second of an integer input [samples, tokens] and has a name
// like s70, which torch.export generates. Any other needs a value from the user: no size is
// guessed. A fixed first dimension that all inputs share is taken for the batch.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "estimator/import/imported_model.hpp"
#include "estimator/onnx/onnx_value.hpp"

namespace stowage {

struct GraphInputs {
  std::map<std::string, Affine> symbols;  ///< values of all named dimensions of the file
  std::int64_t fixed_batch = 0;           ///< 0: the batch has a name, or there is none
  std::int64_t seq = 0;                   ///< 0: there is no sequence
  /// The inputs in the order of the file, without those that are also initialisers.
  std::vector<std::pair<std::string, TensorType>> tensors;
  Diagnostics notes;
};

/// Errors: dimensions without a value (all of them, with the input), inputs that are not tensors,
/// values for dimensions that do not exist.
[[nodiscard]] Result<GraphInputs> read_graph_inputs(const OnnxGraph& graph,
                                                    const ImportOptions& options);

}  // namespace stowage
