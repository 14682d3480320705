// How much scratch a device wants for a recurrent layer: the arguments `scratch` of rnn_forward and
// rnn_backward, which nobody reads afterwards. gpu_probe/kernels/rows/rnn_work.cpp deals it out.
#pragma once

#include <cstdint>

namespace stowage {

struct RnnSizes {
  std::int64_t gates = 1, layers = 1, directions = 1, in = 0, hidden = 0;
  std::int64_t weights = 0;  ///< elements of all weights and biases
  bool copies = false;       ///< arguments of 16 bits are copied to float32

  [[nodiscard]] constexpr std::int64_t width() const { return directions * hidden; }
  [[nodiscard]] constexpr std::int64_t rows() const { return gates * hidden; }
  [[nodiscard]] constexpr std::int64_t widest() const { return in > width() ? in : width(); }
};

/// Values of float32 (float64 where the layer is): of a position of a sequence, of a sequence, and
/// once.
struct RnnScratch {
  std::int64_t of_position = 0, of_sequence = 0, once = 0;
};

/// The argument and the result position by position, a layer's argument after dropout, and a
/// direction's gates; the gates' recurrent part at one position.
[[nodiscard]] constexpr RnnScratch rnn_forward_scratch(const RnnSizes& s) {
  const std::int64_t states = 2 * s.layers * s.width();  // h0, c0
  return {.of_position = s.in + 2 * s.width() + s.rows(),
          .of_sequence = s.rows() + (s.copies ? states : 0),
          .once = s.copies ? s.weights : 0};
}

/// The argument and the result position by position, the gradients of a layer's result and
/// argument, its argument after dropout, and the gradients of both parts of a direction's gates;
/// those of the state at one position.
[[nodiscard]] constexpr RnnScratch rnn_backward_scratch(const RnnSizes& s) {
  const std::int64_t states = 2 * s.layers * s.width();
  return {.of_position = s.in + 2 * s.width() + 2 * s.widest() + 2 * s.rows(),
          .of_sequence = 2 * s.hidden + (s.copies ? states : 0),
          .once = s.copies ? 2 * s.weights : 0};
}

}  // namespace stowage
