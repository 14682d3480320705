// Compiled kernels, kept from one run to the next: a file for each function, architecture, source
// and version of NVRTC, which it names in full (../cache/kept_files.hpp).
#pragma once

#include <optional>
#include <string>

#include "gpu_probe/cuda/nvrtc.hpp"

namespace stowage {

inline constexpr std::size_t most_kernel_files = 2000;  ///< of a folder; the longest unused go
inline constexpr std::size_t largest_kernel_file = std::size_t{16} << 20;  ///< bytes

class KernelCache {
 public:
  /// `folder`: "" for none. `compiler`: the version of NVRTC.
  KernelCache(std::string folder, std::string compiler, std::string architecture);

  /// Of one function. None: it is not kept.
  [[nodiscard]] std::optional<CompiledKernels> find(const std::string& function) const;
  void add(const std::string& function, const CompiledKernels& kernel) const;

  [[nodiscard]] std::string path(const std::string& function) const;

 private:
  [[nodiscard]] std::string key(const std::string& function) const;
  std::string folder_, circumstances_;
};

}  // namespace stowage
