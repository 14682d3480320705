// What is added to a product or a convolution: a value a column, or a channel.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"

namespace stowage::body {

/// Each row becomes the bias: a product with beta 1 adds itself. The index is an element.
template <class T, class Real>
struct RowsOfBias {
  T* y;
  Index width;
  Floats bias;
  STOWAGE_BODY void operator()(Index i) const { store(y, i, bias.at<Real>(i % width)); }
};

/// y += bias of its channel, y being [images, channels, area]. The index is an element.
template <class T, class Real>
struct BiasOfChannels {
  T* y;
  Index channels, area;
  Floats bias;
  STOWAGE_BODY void operator()(Index i) const {
    store(y, i, load<Real>(y, i) + bias.at<Real>(i / area % channels));
  }
};

}  // namespace stowage::body
