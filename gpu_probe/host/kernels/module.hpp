// The host kernels as a module: what host_backend loads on first use, so that a program which runs
// no kernel does not pay for loading oneDNN and OpenBLAS.
//
// The module is `libstowage_host_kernels.so`. It exports host_kernels_build_entry, which says which
// build it belongs to and which the program calls first, and host_kernels_entry: the table is of
// the program's types only where both are of one build. Everything in it runs to completion before
// it returns, on host addresses.
#pragma once

#include <string>

#include "gpu_probe/backend/backend.hpp"

namespace stowage {

struct HostKernelTable {
  /// Runs the kernel. False: `error` says which kernel, and what does not suit.
  bool (*run)(const KernelCall& call, std::string& error) = nullptr;
  /// How many threads a kernel may use (at least 1). For a given number results are the same bits.
  void (*set_threads)(int threads) = nullptr;
};

using HostKernelsEntry = const HostKernelTable* (*)();
inline constexpr const char* host_kernels_entry = "stowage_host_kernels";

using HostKernelsBuildEntry = const char* (*)();
inline constexpr const char* host_kernels_build_entry = "stowage_host_kernels_build";

}  // namespace stowage
