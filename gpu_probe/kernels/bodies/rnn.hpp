// One position of a recurrent layer in one direction, over a batch. Equations and order of gates
// are PyTorch's: lstm i, f, g, o; gru r, z, n (with b_hn inside r's product).
// estimator/step/rnn_reserve.hpp says what a cell keeps. `T` is float or double.
#pragma once

#include "gpu_probe/kernels/bodies/division.hpp"
#include "gpu_probe/kernels/bodies/dropout.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"

namespace stowage::body {

enum class RnnCell : Byte { lstm, gru, tanh, relu };

/// A value for each hidden feature of each sequence. Sequences lie `row` elements apart.
template <class T>
struct RnnRows {
  T* data;
  Index row;
  [[nodiscard]] STOWAGE_BODY T& at(Index sequence, Index feature) const {
    return data[sequence * row + feature];
  }
};

/// Forward: from the gates' inputs to the new state. The index is a feature of a sequence.
template <class T>
struct RnnForward {
  RnnCell cell;
  Index hidden, gates;
  const T *input, *recurrent;  ///< W_ih x and W_hh h, [batch, gates, hidden]
  const T *b_ih, *b_hh;        ///< [gates, hidden]; null: none
  RnnRows<const T> h_before, c_before;
  RnnRows<T> h, kept;
  Floats h_last, c_last;  ///< [batch, hidden]; without an address: not the last position

  STOWAGE_BODY void operator()(Index i) const {
    const Index row = quotient(i, hidden), j = i - row * hidden;
    T h_new;
    if (cell == RnnCell::lstm) {
      h_new = lstm(i, row, j);
    } else if (cell == RnnCell::gru) {
      h_new = gru(row, j);
    } else {
      const T sum = of_input(row, j, 0) + of_state(row, j, 0);
      h_new = cell == RnnCell::tanh ? body::tanh(sum) : most(sum, T(0));
    }
    h.at(row, j) = h_new;
    if (h_last.is_there()) h_last.set(i, h_new);
  }

 private:
  [[nodiscard]] STOWAGE_BODY T of_input(Index row, Index j, Index gate) const {
    const T bias = b_ih == nullptr ? T(0) : b_ih[gate * hidden + j];
    return input[(row * gates + gate) * hidden + j] + bias;
  }
  [[nodiscard]] STOWAGE_BODY T of_state(Index row, Index j, Index gate) const {
    const T bias = b_hh == nullptr ? T(0) : b_hh[gate * hidden + j];
    return recurrent[(row * gates + gate) * hidden + j] + bias;
  }
  [[nodiscard]] STOWAGE_BODY T sum(Index row, Index j, Index gate) const {
    return of_input(row, j, gate) + of_state(row, j, gate);
  }
  STOWAGE_BODY void keep(Index row, Index j, Index vector, T value) const {
    kept.at(row, vector * hidden + j) = value;
  }

  [[nodiscard]] STOWAGE_BODY T lstm(Index index, Index row, Index j) const {
    const T i = sigmoid(sum(row, j, 0)), f = sigmoid(sum(row, j, 1)),
            g = body::tanh(sum(row, j, 2)), o = sigmoid(sum(row, j, 3));
    const T c = f * c_before.at(row, j) + i * g;
    keep(row, j, 0, i);
    keep(row, j, 1, f);
    keep(row, j, 2, g);
    keep(row, j, 3, o);
    keep(row, j, 4, c);
    if (c_last.is_there()) c_last.set(index, c);
    return o * body::tanh(c);
  }
  [[nodiscard]] STOWAGE_BODY T gru(Index row, Index j) const {
    const T r = sigmoid(sum(row, j, 0)), z = sigmoid(sum(row, j, 1)), q = of_state(row, j, 2);
    const T n = body::tanh(of_input(row, j, 2) + r * q);
    keep(row, j, 0, r);
    keep(row, j, 1, z);
    keep(row, j, 2, n);
    keep(row, j, 3, q);
    return (1 - z) * n + z * h_before.at(row, j);
  }
};

/// Backward: from the gradient of the new state to those of the two parts of the gates. `dh` and
/// (lstm) `dc`, [batch, hidden], become the gradients of the old state, without the part that comes
/// through W_hh. The index is a feature of a sequence.
template <class T>
struct RnnBackward {
  RnnCell cell;
  Index hidden, gates;
  RnnRows<const T> dy;  ///< of the layer's result at this position
  T *dh, *dc;
  RnnRows<const T> h_before, c_before, h, kept;
  T *d_input, *d_recurrent;  ///< [batch, gates, hidden]; the same address except for a gru

  STOWAGE_BODY void operator()(Index i) const {
    const Index row = quotient(i, hidden), j = i - row * hidden;
    const T arrives = dh[i] + dy.at(row, j);
    dh[i] = 0;
    if (cell == RnnCell::lstm) return lstm(i, row, j, arrives);
    if (cell == RnnCell::gru) return gru(i, row, j, arrives);
    const T value = h.at(row, j);
    const T slope = cell == RnnCell::tanh ? 1 - value * value : value <= 0 ? T(0) : T(1);
    d_input[i] = arrives * slope;
  }

 private:
  [[nodiscard]] STOWAGE_BODY T kept_at(Index row, Index j, Index vector) const {
    return kept.at(row, vector * hidden + j);
  }
  [[nodiscard]] STOWAGE_BODY Index gate_at(Index row, Index j, Index gate) const {
    return (row * gates + gate) * hidden + j;
  }

  STOWAGE_BODY void lstm(Index index, Index row, Index j, T arrives) const {
    const T i = kept_at(row, j, 0), f = kept_at(row, j, 1), g = kept_at(row, j, 2),
            o = kept_at(row, j, 3), t = body::tanh(kept_at(row, j, 4));
    const T d_cell = dc[index] + arrives * o * (1 - t * t);
    d_input[gate_at(row, j, 0)] = d_cell * g * i * (1 - i);
    d_input[gate_at(row, j, 1)] = d_cell * c_before.at(row, j) * f * (1 - f);
    d_input[gate_at(row, j, 2)] = d_cell * i * (1 - g * g);
    d_input[gate_at(row, j, 3)] = arrives * t * o * (1 - o);
    dc[index] = d_cell * f;
  }
  STOWAGE_BODY void gru(Index index, Index row, Index j, T arrives) const {
    const T r = kept_at(row, j, 0), z = kept_at(row, j, 1), n = kept_at(row, j, 2),
            q = kept_at(row, j, 3);
    const T dn = arrives * (1 - z) * (1 - n * n);
    const T of_r = dn * q * r * (1 - r), of_z = arrives * (h_before.at(row, j) - n) * z * (1 - z);
    d_input[gate_at(row, j, 0)] = d_recurrent[gate_at(row, j, 0)] = of_r;
    d_input[gate_at(row, j, 1)] = d_recurrent[gate_at(row, j, 1)] = of_z;
    d_input[gate_at(row, j, 2)] = dn;
    d_recurrent[gate_at(row, j, 2)] = dn * r;
    dh[index] = arrives * z;
  }
};

/// Copies x, [outer, inner, width] or [inner, outer, width], to y, [outer, inner, width], in any
/// formats. Without x y becomes 0. The index is an element of y.
struct RnnCopy {
  Floats x, y;
  Index inner, outer, width;
  bool is_turned;

  STOWAGE_BODY void operator()(Index i) const {
    Index from = i;
    if (is_turned) {
      const Index row = quotient(i, width), o = quotient(row, inner);
      from = ((row - o * inner) * outer + o) * width + (i - row * width);
    }
    if (y.format == FloatFormat::float64) {
      y.set(i, x.at(from, 0.0));
    } else {
      y.set(i, x.at(from, 0.0F));
    }
  }
};

/// y = x times scale where the draw keeps the element, else 0; y may be x. The index is an element;
/// its number in the draw is the index plus `first`.
template <class T>
struct RnnDrop {
  const T* x;
  T* y;
  MaskDraw draw;
  Index first;
  float scale;
  STOWAGE_BODY void operator()(Index i) const {
    y[i] = x[i] * static_cast<T>(draw.keeps(first + i) ? scale : 0.0F);
  }
};

/// The gradient of a bias, which is a sum over rows. The index is a tile of columns.
template <class T>
struct RnnBias {
  const T* d;
  Floats db;
  Index rows, columns;
  STOWAGE_BODY void operator()(Index tile, const Group& group) const {
    sum_columns<T>(
        group, tile, columns, rows, [&](Index row, Index j) { return d[row * columns + j]; },
        [&](Index j, T sum) { db.set(j, sum); });
  }
};

}  // namespace stowage::body
