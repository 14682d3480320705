// Nvrtc: NVIDIA's run-time compiler, which compiles our own kernels for a device on this machine.
// It needs no GPU.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "gpu_probe/driver/nvrtc_functions.hpp"

namespace stowage {

/// "sm_86" for compute capability 8.6.
[[nodiscard]] std::string architecture_text(int major, int minor);

struct CompiledKernels {
  std::string cubin;               ///< what cuModuleLoadData takes
  std::vector<std::string> names;  ///< of its functions, in the order of the request
};

class Nvrtc {
 public:
  /// Loads the first of the files that loads. Errors: none loads (the loader's words about the
  /// last), it lacks a function.
  [[nodiscard]] static Result<Nvrtc> open(const std::vector<std::string>& files);

  [[nodiscard]] const std::string& version() const { return version_; }  ///< "13.0"
  [[nodiscard]] const std::string& file() const { return file_; }
  /// The architectures that it compiles for, ascending: 75, 80, ...
  [[nodiscard]] Result<std::vector<int>> architectures() const;

  /// `functions`: names by kernels::device_function. Errors: NVRTC's log.
  [[nodiscard]] Result<CompiledKernels> compile(std::span<const std::string> functions,
                                                const std::string& architecture) const;

 private:
  [[nodiscard]] Result<CompiledKernels> compile(void* program,
                                                std::span<const std::string> functions,
                                                const std::string& architecture) const;
  [[nodiscard]] Result<void> done(int error, const char* call) const;

  NvrtcFunctions functions_;
  std::string version_, file_;
};

}  // namespace stowage
