// One position of a recurrent layer in one direction, for one sequence: the gates' arguments in,
// the new state out, and the way back. PyTorch's equations and order of gates: lstm i, f, g, o; gru
// r, z, n (with b_hn inside r's product). `Value` is what tensors hold: float or double.
#pragma once

#include <vector>

#include "gpu_probe/host/kernels/kernels.hpp"
#include "gpu_probe/kernels/rows/rnn_shape.hpp"

namespace stowage::host {

/// Sums in double, `hidden` values a gate.
using Vector = std::vector<double>;

/// What a position starts from and leaves; each pointer to `hidden` values of one sequence.
template <class Value>
struct CellStep {
  const Value* h_before;
  const Value* c_before;  ///< lstm
  Value* h;
  Value* kept;  ///< rnn_reserve.hpp's vectors of this position, c' being the lstm's fifth
};

/// `input` is W_ih x + b_ih, `recurrent` W_hh h + b_hh.
template <class Value>
void cell_forward(RnnCell cell, const Vector& input, const Vector& recurrent,
                  const CellStep<Value>& step);

/// The gradients of the two sums, from those of the new state; `dh` and (lstm) `dc` are replaced by
/// what reaches the old state otherwise than through W_hh.
template <class Value>
void cell_backward(RnnCell cell, const CellStep<Value>& step, Vector& dh, Vector& dc,
                   Vector& d_input, Vector& d_recurrent);

}  // namespace stowage::host
