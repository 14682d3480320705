// What rnn_forward keeps for rnn_backward in the `stowage` set: its argument `reserve`.
//
// float32 values, of float64 layers float64 ones, in bytes (the argument is uint8 of 4 or 8 times
// as many elements). For each layer, each direction (the one that begins at the end second), each
// position of the sequence and each sequence of the batch, `hidden` wide each:
//   lstm  i, f, g, o after their activations, and the cell's state c'
//   gru   r, z, n after their activations, and the hidden part of n's argument, W_hn h + b_hn
//   tanh, relu  nothing
// then the results of each layer but the last, [seq, batch, directions * hidden]. What dropout
// keeps of them is drawn again from the seed. (cuDNN's own reserve is larger, and opaque.)
//
// The host's rnn_forward may be called without a reserve; it then drops nothing, whatever its
// attribute `dropout` says.
#pragma once

#include <cstdint>
#include <string_view>

namespace stowage {

/// How many vectors of `hidden` values a cell keeps at a position; -1: no such cell.
[[nodiscard]] constexpr std::int64_t rnn_kept_vectors(std::string_view cell) {
  if (cell == "lstm") return 5;
  if (cell == "gru") return 4;
  return cell == "tanh" || cell == "relu" ? 0 : -1;
}

/// Values in the reserve at one position of one sequence.
[[nodiscard]] constexpr std::int64_t rnn_reserve_values(std::string_view cell, std::int64_t layers,
                                                        std::int64_t directions,
                                                        std::int64_t hidden) {
  return hidden * directions * (layers * rnn_kept_vectors(cell) + layers - 1);
}

}  // namespace stowage
