// Where NVIDIA's libraries may lie, in the order in which they are looked for.
//
//   1. where the user says: --cudnn for cuDNN, --cuda-libraries for all; else CUDNN_PATH, and
//      CUDA_PATH for the toolkit's
//   2. the active Python environment: VIRTUAL_ENV, CONDA_PREFIX (its site-packages, where
//      `pip install torch` puts all of them, and its own lib/)
//   3. where the loader looks, and /usr/local/cuda
//   4. the packages of the python3 on PATH, its system's and its user's
//
// Folders are listed and nothing is run: a few dozen system calls.
#pragma once

#include <string>
#include <vector>

namespace stowage {

inline constexpr const char* cudnn_file = "libcudnn.so.9";

/// Which library. cuDNN has one file name, the toolkit's one for each major version of CUDA.
enum class NvidiaLibrary { cudnn, cublas, cublas_lt, nvrtc };

/// Paths to be tried one after another; a bare name stands for the loader's search. Of the
/// toolkit's libraries the newest first, in every place; none is newer than `newest`, the major
/// version of CUDA that the driver serves.
[[nodiscard]] std::vector<std::string> library_places(NvidiaLibrary library, int newest);
[[nodiscard]] std::vector<std::string> cudnn_places();

/// Whether `folder` is one that --cudnn may name: cuDNN's root, its lib/ or lib64/, or a Python
/// environment.
[[nodiscard]] bool has_cudnn(const std::string& folder);
/// Whether it holds any of the three, as --cuda-libraries may name it.
[[nodiscard]] bool has_nvidia_libraries(const std::string& folder);

/// From now on cuDNN is looked for in `folder` alone. Before the first question only.
void use_cudnn_in(std::string folder);
/// So with all of them, cuDNN too unless use_cudnn_in() says otherwise.
void use_nvidia_libraries_in(std::string folder);

}  // namespace stowage
