// NVIDIA's libraries as a run on the GPU would find them: cuBLAS for products, NVRTC for kernels of
// our own. (cuDNN: gpu_probe/cudnn.)
#pragma once

#include <string>
#include <vector>

namespace stowage {

struct FoundLibrary {
  std::string name;     ///< "cuBLAS"
  std::string version;  ///< "13.1.0"; "": there is none
  std::string file;     ///< where the loader found it
};

/// Of CUDA's major version `newest` and older. Each is loaded; nothing of a GPU is touched.
[[nodiscard]] std::vector<FoundLibrary> found_libraries(int newest);

}  // namespace stowage
