// KernelCache: compiled kernels, kept from one run to the next (../cache/file_cache.hpp). A file
// holds one function for one architecture, compiled from one source by one version of NVRTC; its
// content names all of these.
#pragma once

#include <optional>
#include <string>

#include "gpu_probe/cuda/nvrtc.hpp"

namespace stowage {

/// In a folder; files that were unused for longest are removed.
inline constexpr std::size_t most_kernel_files = 2000;
inline constexpr std::size_t largest_kernel_file = std::size_t{16} << 20;  ///< bytes

class KernelCache {
 public:
  /// `folder`: "": nothing is kept. `compiler`: the version of NVRTC.
  KernelCache(std::string folder, std::string compiler, std::string architecture);

  /// The cubin of one function. None: it is not kept.
  [[nodiscard]] std::optional<CompiledKernels> find(const std::string& function) const;
  void add(const std::string& function, const CompiledKernels& kernel) const;

  [[nodiscard]] std::string path(const std::string& function) const;

 private:
  [[nodiscard]] std::string key(const std::string& function) const;
  std::string folder_, circumstances_;
};

}  // namespace stowage
