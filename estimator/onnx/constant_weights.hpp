// Weights that a file has in Constant nodes, as Paddle's exporter and frozen TorchScript write
// them.
#pragma once

#include "estimator/onnx/onnx_file.hpp"

namespace stowage {

/// Makes an initialiser, named after the node's output, of each Constant that is used as a weight
/// or a bias, also through views (Reshape, Transpose, Cast and others) but not through arithmetic:
///
///   Conv, ConvTranspose, Gemm, PRelu, LSTM, GRU, RNN   the inputs after the first
///   MatMul                                             either input
///   Add                                                a vector added to a MatMul's product
///   normalizations, Add, Mul, Gather's table           unless PyTorch wrote the file
///
/// The other operand must depend on the graph's inputs. PyTorch writes parameters as initialisers,
/// and what norms want in a Constant where they have no parameters. A norm's Constant of ones or
/// zeros and a single number of an Add or Mul stay constants in every file.
void make_constant_weights_initialisers(OnnxGraph& graph, bool of_pytorch);

}  // namespace stowage
