// One position of a recurrent layer in one direction, for one sequence: from the gates' inputs to
// the new state, and backward. Equations and order of gates are PyTorch's: lstm i, f, g, o; gru r,
// z, n (with b_hn inside r's product). `Value` is the type of the tensors: float or double.
#pragma once

#include <vector>

#include "gpu_probe/host/kernels/kernels.hpp"
#include "gpu_probe/kernels/rows/rnn_shape.hpp"

namespace stowage::host {

/// Sums in double: `hidden` values for each gate.
using Vector = std::vector<double>;

/// The states before and after a position; each pointer is to `hidden` values of one sequence.
template <class Value>
struct CellStep {
  const Value* h_before;
  const Value* c_before;  ///< lstm
  Value* h;
  /// This position's vectors in the reserve (rnn_reserve.hpp); c' is the lstm's fifth.
  Value* kept;
};

/// `input` is W_ih x + b_ih, `recurrent` W_hh h + b_hh.
template <class Value>
void cell_forward(RnnCell cell, const Vector& input, const Vector& recurrent,
                  const CellStep<Value>& step);

/// The gradients of the two sums, from those of the new state. `dh` and (lstm) `dc` become the
/// gradients of the old state, without the part that comes through W_hh.
template <class Value>
void cell_backward(RnnCell cell, const CellStep<Value>& step, Vector& dh, Vector& dc,
                   Vector& d_input, Vector& d_recurrent);

}  // namespace stowage::host
