// In inference, extends the lifetimes of what the variables of an attention's function hold, where
// the attention is written out in tensor operations.
//
//   layers.0.attn.scores reads q, k       layers.0.attn.scores reads q, k
//   layers.0.attn.weights reads scores    layers.0.attn.weights reads scores
//   layers.0.attn.product reads weights   layers.0.attn.product reads weights
//   layers.0.attn.o_proj                  layers.0.attn.o_proj holds q, k, v, weights
//   layers.0.fc1                          layers.0.fc1
//   layers.0.fc2                          layers.0.fc2 holds weights (`held: layer`)
//
// The function has queries, keys, values and the softmax's result in variables until it returns
// (timm's Attention.forward, torchvision's shifted_window_attention, transformers' modules).
// transformers' modules return the result besides, and the layer that calls them keeps it in a
// variable, `hidden_states, _ = self.self_attn(...)`, until it returns or a second attention's
// result takes the variable over. In training autograd has saved all of these.
//
// An attention is a softmax whose attribute `held` is set, between two products.
#pragma once

#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Adds the storages to KernelNode::holds of the last node of the module, or of the repeated layer,
/// around the softmax. `step` must be the lowered `model`, with no other rewrite than
/// with_module_inputs. Training steps, and steps of kernel sets that do not free by reference
/// counting, are unchanged.
[[nodiscard]] StepGraph with_attention_variables(StepGraph step, const ModelGraph& model);

}  // namespace stowage
