// From a description's model to the document of a step: what `stowage lower` writes, and what the
// commands make of a model before they look at it, so that they answer the same for either.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "estimator/base/diagnostic.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/rewrite/theano_buffers.hpp"
#include "estimator/step/choose_step.hpp"

namespace stowage {

/// What takes a lowering of its own, and is left out where nobody will ask.
struct DocumentParts {
  bool costs = true;          ///< of the layers
  bool result_bytes = true;   ///< for the rule of thumb
  bool evaluation = true;     ///< of a step that trains
  TheanoBuffers theano = {};  ///< of runtimes that have them (RuntimeTraits)
};
inline constexpr DocumentParts step_alone{false, false, false};

/// `seq`: that the model was read with; none: its default. Errors: as lower's, of the step itself.
/// A part that cannot be lowered is left out: a model whose training autograd refuses has no costs
/// of layers, and its inference has.
[[nodiscard]] Result<StepDocument> make_document(const ModelGraph& model, const ChosenStep& chosen,
                                                 Runtime runtime, std::optional<std::int64_t> seq,
                                                 const DocumentParts& parts = {});

/// A row an operator. Its costs are 0.
[[nodiscard]] std::vector<Layer> layers_of(const ModelGraph& model);

/// What eager PyTorch's forward pass computes and keeps, layer by layer; a model without a loss
/// keeps nothing. Errors: as lower's.
[[nodiscard]] Result<void> add_costs(const ModelGraph& model, TensorLayout layout,
                                     std::vector<Layer>& layers);

/// The same of a step at hand. `layers`: by OperatorId; null: no layer's. Throws
/// ArithmeticOverflow.
void add_step_costs(const StepGraph& step, const std::vector<Layer*>& layers);

}  // namespace stowage
