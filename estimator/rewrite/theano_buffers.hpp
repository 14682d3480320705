// Adds the memory that a function of Keras with Theano holds in addition to our own executor's
// step.
//
//   filters    Keras 2 stores them as [height, width, in, out], whatever the images' format, and
//              hands Theano a transposed view (theano_backend.py, _preprocess_conv2d_kernel). cuDNN
//              wants them in one piece, so that dnn_conv copies them (gpu_contiguous); the copy is
//              also what the gradient of the input reads, and lives until then: the parameters of
//              all convolutions once more
//   images     with channels last each convolution copies its input, which lives until the filters'
//              gradient, and the gradient of its output
//   rectifiers relu is 0.5 (x + |x|), whose gradient reads x (tensor/nnet/nnet.py): what goes in is
//              kept beside what comes out
//   dropout    its mask is a tensor of floatX
//   SGD        Keras's has a moment for each parameter, also at momentum 0 (optimizers.py)
//   updates    in place: shared variables with an update are handed to the function as mutable
//              (compile/pfunc.py), and InplaceElemwiseOptimizer (tensor/opt.py) works on them
//   order      first come, first run (general_toposort in gof/graph.py, which the VM follows): an
//              update soon after its gradient, the copies of filters before anything else
//   allow_gc   =False: every result stays to the end of the function, and until it runs again
//
// tests/reference/theano_graph.py reads updates, moments, order and transposed filters from
// functions that Theano compiled.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

struct TheanoBuffers {
  bool channels_last = false;        ///< Keras's image_data_format
  bool keeps_intermediates = false;  ///< allow_gc=False
};

/// Linear in the step, except for sorting. Errors: those of with_order().
[[nodiscard]] Result<StepGraph> with_theano_buffers(StepGraph step, const TheanoBuffers& buffers);

}  // namespace stowage
