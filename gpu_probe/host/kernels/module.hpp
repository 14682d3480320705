// HostKernelTable: the host kernels as a module that is loaded when a kernel first runs. A program
// that runs no kernel does not spend time on loading oneDNN and OpenBLAS.
//
// The module is `libstowage_host_kernels.so`. It exports two functions. The program first calls
// host_kernels_build_entry, which tells the module's build. Only if that is the program's own build
// does host_kernels_entry return a table of the program's types. A kernel has run to its end, on
// host addresses, when its function returns.
#pragma once

#include <string>

#include "gpu_probe/backend/backend.hpp"

namespace stowage {

struct HostKernelTable {
  /// Runs the kernel. False: `error` names the kernel and what does not fit.
  bool (*run)(const KernelCall& call, std::string& error) = nullptr;
  /// Sets how many threads a kernel may use (at least 1). For one number of threads a result has
  /// the same bits every time.
  void (*set_threads)(int threads) = nullptr;
};

using HostKernelsEntry = const HostKernelTable* (*)();
inline constexpr const char* host_kernels_entry = "stowage_host_kernels";

using HostKernelsBuildEntry = const char* (*)();
inline constexpr const char* host_kernels_build_entry = "stowage_host_kernels_build";

}  // namespace stowage
