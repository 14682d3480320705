// What PyTorch does with one operator in a small network (tests/reference/operators, written by
// operator_saved.py), held against ours.
#pragma once

#include <string>
#include <string_view>

namespace stowage::reference {

struct Comparison {
  int compared = 0;
  int same_shapes = 0;        ///< networks with PyTorch's output shape, parameters and buffers
  int same_saved = 0;         ///< with PyTorch's saved storages; in inference nothing is saved
  int same_peaks = 0;         ///< with PyTorch's peak in every phase
  std::string disagreements;  ///< a line each: "conv1d: peak of backward: 400, PyTorch 384"
};

/// Builds the network of every row of operators/<family>.json from its description and compares,
/// to the byte: the output's shape, parameters, buffers, and for the `pytorch` kernel set the saved
/// storages by kind and the peak of each phase. Of the `stowage` set it asks that every argument is
/// a contiguous whole, that nothing is read before it is written, and that the same parameters get
/// gradients of their own shapes.
[[nodiscard]] Comparison compare_operators(std::string_view family);
/// The same of any file of that form, or of all such files of a folder.
[[nodiscard]] Comparison compare_file(const std::string& path);

}  // namespace stowage::reference
