// Where the host kernels come from: the module libstowage_host_kernels.so, loaded on first use.
//
// It is looked for beside the running program, in the folder above (the build tree's tests), and in
// ../lib/stowage (an installed program). A module of another build is refused: its kernels would
// take the program's calls for something else.
#pragma once

#include <filesystem>
#include <string_view>

#include "estimator/base/diagnostic.hpp"
#include "gpu_probe/host/kernels/module.hpp"

namespace stowage {

/// The loaded kernels, which use `host_kernel_threads` threads; the same object on every call, kept
/// until the program ends. Errors: the module is not there or does not load (the loader's words).
[[nodiscard]] Result<const HostKernelTable*> host_kernels();

/// As host_kernels, from one file. Errors: it does not load, is no such module, or is of another
/// build.
[[nodiscard]] Result<const HostKernelTable*> load_host_kernels(const std::filesystem::path& file);

/// Of the program: a hash over the kernels, their interface and the compiler. A module says its
/// own.
[[nodiscard]] std::string_view host_kernels_build();

/// Fixed, not the machine's number, so that a run gives the same bits on every machine.
inline constexpr int host_kernel_threads = 2;

/// Runs one kernel to its end on host addresses. Errors name the kernel.
[[nodiscard]] Result<void> run_host_kernel(const KernelCall& call);

}  // namespace stowage
