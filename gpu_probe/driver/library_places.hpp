// Where NVIDIA's libraries are looked for, in this order:
//
//   1. the folder that the user names: --cudnn for cuDNN, --cuda-libraries for all; else
//      CUDNN_PATH, and CUDA_PATH for the toolkit's libraries
//   2. the active Python environment: VIRTUAL_ENV, CONDA_PREFIX (its site-packages, where
//      `pip install torch` puts all of them, and its own lib/)
//   3. the loader's search, and /usr/local/cuda
//   4. the packages of the python3 on PATH: the system's and the user's
//
// The search lists folders and runs nothing: a few dozen system calls.
#pragma once

#include <string>
#include <vector>

namespace stowage {

inline constexpr const char* cudnn_file = "libcudnn.so.9";

/// cuDNN has one file name; a library of the toolkit has one for each major version of CUDA.
enum class NvidiaLibrary { cudnn, cublas, cublas_lt, nvrtc };

/// Paths to be tried in this order; a bare name stands for the loader's search. In every place the
/// newest library of the toolkit comes first. `newest`: the newest major version of CUDA that is
/// looked for, which is the one that the driver can run.
[[nodiscard]] std::vector<std::string> library_places(NvidiaLibrary library, int newest);
[[nodiscard]] std::vector<std::string> cudnn_places();

/// Whether `folder` has cuDNN: it may be cuDNN's root, its lib/ or lib64/, or a Python environment.
[[nodiscard]] bool has_cudnn(const std::string& folder);
/// Whether `folder` has cuDNN, cuBLAS or NVRTC.
[[nodiscard]] bool has_nvidia_libraries(const std::string& folder);

/// Looks for cuDNN in `folder` alone from now on. Precondition: cuDNN has not been asked yet.
void use_cudnn_in(std::string folder);
/// Looks for all libraries in `folder` alone from now on; for cuDNN only if use_cudnn_in() is not
/// called.
void use_nvidia_libraries_in(std::string folder);

}  // namespace stowage
