#include "gpu_probe/host/kernels/rnn_cell.hpp"

#include <algorithm>
#include <cmath>

namespace stowage::host {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

template <class Value>
void lstm_forward(std::size_t hidden, const Vector& in, const Vector& re,
                  const CellStep<Value>& s) {
  for (std::size_t j = 0; j < hidden; ++j) {
    const auto sum = [&](std::size_t gate) {
      return in[gate * hidden + j] + re[gate * hidden + j];
    };
    const double i = sigmoid(sum(0)), f = sigmoid(sum(1)), g = std::tanh(sum(2)),
                 o = sigmoid(sum(3));
    const double c = f * s.c_before[j] + i * g;
    const double kept[] = {i, f, g, o, c};
    for (std::size_t k = 0; k < 5; ++k) s.kept[k * hidden + j] = static_cast<Value>(kept[k]);
    s.h[j] = static_cast<Value>(o * std::tanh(c));
  }
}

template <class Value>
void lstm_backward(std::size_t hidden, const CellStep<Value>& s, Vector& dh, Vector& dc,
                   Vector& d_input, Vector& d_recurrent) {
  for (std::size_t j = 0; j < hidden; ++j) {
    const double i = s.kept[j], f = s.kept[hidden + j], g = s.kept[2 * hidden + j],
                 o = s.kept[3 * hidden + j],
                 t = std::tanh(static_cast<double>(s.kept[4 * hidden + j]));
    const double d_cell = dc[j] + dh[j] * o * (1 - t * t);
    d_input[j] = d_cell * g * i * (1 - i);
    d_input[hidden + j] = d_cell * s.c_before[j] * f * (1 - f);
    d_input[2 * hidden + j] = d_cell * i * (1 - g * g);
    d_input[3 * hidden + j] = dh[j] * t * o * (1 - o);
    dc[j] = d_cell * f;
    dh[j] = 0;
  }
  d_recurrent = d_input;
}

template <class Value>
void gru_forward(std::size_t hidden, const Vector& in, const Vector& re, const CellStep<Value>& s) {
  for (std::size_t j = 0; j < hidden; ++j) {
    const double r = sigmoid(in[j] + re[j]), z = sigmoid(in[hidden + j] + re[hidden + j]);
    const double q = re[2 * hidden + j], n = std::tanh(in[2 * hidden + j] + r * q);
    const double kept[] = {r, z, n, q};
    for (std::size_t k = 0; k < 4; ++k) s.kept[k * hidden + j] = static_cast<Value>(kept[k]);
    s.h[j] = static_cast<Value>((1 - z) * n + z * s.h_before[j]);
  }
}

template <class Value>
void gru_backward(std::size_t hidden, const CellStep<Value>& s, Vector& dh, Vector& d_input,
                  Vector& d_recurrent) {
  for (std::size_t j = 0; j < hidden; ++j) {
    const double r = s.kept[j], z = s.kept[hidden + j], n = s.kept[2 * hidden + j],
                 q = s.kept[3 * hidden + j];
    const double dn = dh[j] * (1 - z) * (1 - n * n);
    d_input[j] = d_recurrent[j] = dn * q * r * (1 - r);
    d_input[hidden + j] = d_recurrent[hidden + j] = dh[j] * (s.h_before[j] - n) * z * (1 - z);
    d_input[2 * hidden + j] = dn;
    d_recurrent[2 * hidden + j] = dn * r;
    dh[j] *= z;
  }
}

std::size_t gates(RnnCell cell) { return cell == RnnCell::lstm ? 4 : cell == RnnCell::gru ? 3 : 1; }

}  // namespace

template <class Value>
void cell_forward(RnnCell cell, const Vector& input, const Vector& recurrent,
                  const CellStep<Value>& step) {
  const std::size_t hidden = input.size() / gates(cell);
  if (cell == RnnCell::lstm) return lstm_forward(hidden, input, recurrent, step);
  if (cell == RnnCell::gru) return gru_forward(hidden, input, recurrent, step);
  for (std::size_t j = 0; j < hidden; ++j) {
    const double sum = input[j] + recurrent[j];
    step.h[j] = static_cast<Value>(cell == RnnCell::tanh ? std::tanh(sum) : std::max(sum, 0.0));
  }
}

template <class Value>
void cell_backward(RnnCell cell, const CellStep<Value>& step, Vector& dh, Vector& dc,
                   Vector& d_input, Vector& d_recurrent) {
  const std::size_t hidden = dh.size();
  if (cell == RnnCell::lstm) return lstm_backward(hidden, step, dh, dc, d_input, d_recurrent);
  if (cell == RnnCell::gru) return gru_backward(hidden, step, dh, d_input, d_recurrent);
  for (std::size_t j = 0; j < hidden; ++j) {
    const double h = step.h[j];
    const double slope = cell == RnnCell::tanh ? 1 - h * h : h <= 0 ? 0 : 1;
    d_input[j] = d_recurrent[j] = dh[j] * slope;
    dh[j] = 0;
  }
}

#define STOWAGE_OF(Value)                                                                    \
  template void cell_forward(RnnCell, const Vector&, const Vector&, const CellStep<Value>&); \
  template void cell_backward(RnnCell, const CellStep<Value>&, Vector&, Vector&, Vector&, Vector&);
STOWAGE_OF(float)
STOWAGE_OF(double)
#undef STOWAGE_OF

}  // namespace stowage::host
