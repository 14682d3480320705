// Which layers overwrite their input: ONNX has no word for it.
//
// PyTorch's image networks are written with activations in place (nn.ReLU(inplace=True)), and
// residual sums too (out += identity). That leaves what is kept for the backward pass as it is, and
// decides which blocks the allocator sees. An exported file says neither. Of a file that PyTorch
// wrote it is taken that
//   - relu, relu6, hardswish and silu overwrite the output of a convolution, a batch norm or a sum,
//   and,
//     in a network with convolutions, that of a linear layer;
//   - a sum whose result is activated overwrites its first input, where that is a batch norm's
//   output,
// where nobody else reads what is overwritten. All that torchvision's and timm's convolutional
// networks have is written so, except regnet's sums. The argument `in_place` says otherwise, for
// all layers.
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
