// Makes the document of a step from a description's model. `stowage lower` writes it, and the other
// commands make it first too, so that they answer the same for a model and for its step file.
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

/// Parts of a document that need an extra lowering each and may be left out.
struct DocumentParts {
  bool costs = true;          ///< of the layers
  bool result_bytes = true;   ///< for the rule of thumb
  bool evaluation = true;     ///< of a step that trains
  TheanoBuffers theano = {};  ///< of runtimes that have them (RuntimeTraits)
};
inline constexpr DocumentParts step_alone{false, false, false};

/// `seq`: the sequence length with which the model was read; none: its default. Errors: those of
/// lower() for the step itself. A part whose lowering fails is left out: a model whose training
/// autograd refuses has no costs of layers, but its inference step has them.
[[nodiscard]] Result<StepDocument> make_document(const ModelGraph& model, const ChosenStep& chosen,
                                                 Runtime runtime, std::optional<std::int64_t> seq,
                                                 const DocumentParts& parts = {});

/// One row per operator, with costs of 0.
[[nodiscard]] std::vector<Layer> layers_of(const ModelGraph& model);

/// Sets the costs: the operations of eager PyTorch's forward pass and the bytes that it saves,
/// layer by layer. A model without a loss saves nothing. Errors: those of lower().
[[nodiscard]] Result<void> add_costs(const ModelGraph& model, TensorLayout layout,
                                     std::vector<Layer>& layers);

/// As above, from a lowered step. `layers`: by OperatorId; null: the operator is in no layer.
/// Throws ArithmeticOverflow.
void add_step_costs(const StepGraph& step, const std::vector<Layer*>& layers);

}  // namespace stowage
