// Biases of products and convolutions: one value for each column, or for each channel.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"

namespace stowage::body {

/// Sets each row to the bias; a product with beta 1 is then added to it. The index is an element.
template <class T, class Real>
struct RowsOfBias {
  T* y;
  Index width;
  Floats bias;
  STOWAGE_BODY void operator()(Index i) const { store(y, i, bias.at<Real>(i % width)); }
};

/// Adds to each element of y, [images, channels, area], the bias of its channel. The index is an
/// element.
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
