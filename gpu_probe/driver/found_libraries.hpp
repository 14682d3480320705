// The libraries of NVIDIA's that a run on the GPU would load: cuBLAS for products, NVRTC for our
// own kernels. (cuDNN: gpu_probe/cudnn.)
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stowage {

struct FoundLibrary {
  std::string name;     ///< "cuBLAS"
  std::string version;  ///< "13.1.0"; "": the library was not found
  std::string file;     ///< that the loader opened
};

/// "13.1.0" for 130100: how cuBLAS and cuDNN number their versions.
[[nodiscard]] std::string library_version_text(std::size_t number);

/// The libraries of CUDA's major version `newest` or older. Loads each of them; does not use the
/// GPU.
[[nodiscard]] std::vector<FoundLibrary> found_libraries(int newest);

}  // namespace stowage
