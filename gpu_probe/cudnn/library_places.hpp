// Where libcudnn.so.9 may lie, in the order in which it is looked for.
//
//   1. where the user says: --cudnn, else CUDNN_PATH
//   2. the active Python environment: VIRTUAL_ENV, CONDA_PREFIX (its site-packages, where
//      `pip install nvidia-cudnn-cu13` puts it, and its own lib/)
//   3. where the loader looks, and /usr/local/cuda
//   4. the packages of the python3 on PATH, its system's and its user's
//
// Folders are listed and nothing is run: a few dozen system calls.
#pragma once

#include <string>
#include <vector>

namespace stowage {

inline constexpr const char* cudnn_file = "libcudnn.so.9";

/// Paths to be tried one after another; the bare name stands for the loader's search.
[[nodiscard]] std::vector<std::string> cudnn_places();

/// Whether `folder` is one that --cudnn may name: cuDNN's root, its lib/ or lib64/, or a Python
/// environment.
[[nodiscard]] bool has_cudnn(const std::string& folder);

/// From now on cuDNN is looked for in `folder` alone. Before the first question only.
void use_cudnn_in(std::string folder);

}  // namespace stowage
