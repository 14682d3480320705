// Decides which layers overwrite their input, which an ONNX file does not say.
//
// PyTorch's image networks use activations in place (nn.ReLU(inplace=True)) and often residual sums
// in place (out += identity). This changes nothing that is saved for the backward pass, but it
// decides which blocks the allocator sees. For a file that PyTorch wrote, the following is assumed:
//
//   - relu, relu6, hardswish and silu overwrite the output of a convolution, a batch norm or a sum,
//     and, in a network with convolutions, that of a linear layer;
//   - a sum whose result is activated overwrites its first input if that is a batch norm's output.
//
// A tensor that another layer reads is not overwritten. The convolutional networks of torchvision
// and timm are all written so, except regnet's sums. The argument `in_place` overrides this for all
// layers.
#pragma once

#include "estimator/import/layer_list.hpp"

namespace stowage {

struct OverwritingLayers {
  int activations = 0, sums = 0;
};

/// `outputs` of the graph are left alone.
[[nodiscard]] OverwritingLayers overwrite_inputs(LayerList& layers,
                                                 const std::vector<LayerOutput>& outputs);

}  // namespace stowage
