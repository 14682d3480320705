// Loads the host kernels from the module libstowage_host_kernels.so, at the first call.
//
// The module is looked for beside the running program, in the folder above (the build tree's
// tests), and in ../lib/stowage (an installed program). A module of another build is refused, since
// it could read the program's calls wrongly.
#pragma once

#include <filesystem>
#include <string_view>

#include "estimator/base/diagnostic.hpp"
#include "gpu_probe/host/kernels/module.hpp"

namespace stowage {

/// The loaded kernels. They use `host_kernel_threads` threads. Every call returns the same object,
/// which stays until the program ends. Errors: the module is missing or does not load (the loader's
/// words).
[[nodiscard]] Result<const HostKernelTable*> host_kernels();

/// As host_kernels(), from one file. Errors: it does not load, is not such a module, or is of
/// another build.
[[nodiscard]] Result<const HostKernelTable*> load_host_kernels(const std::filesystem::path& file);

/// The program's build: a hash over the kernels, their interface and the compiler. A module has a
/// hash of its own.
[[nodiscard]] std::string_view host_kernels_build();

/// The same number on every machine, so that a run gives the same bits everywhere.
inline constexpr int host_kernel_threads = 2;

/// Runs one kernel to its end on host addresses. Errors name the kernel.
[[nodiscard]] Result<void> run_host_kernel(const KernelCall& call);

}  // namespace stowage
