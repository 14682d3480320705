#include "gpu_probe/host/host_kernels.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "estimator/base/installation.hpp"
#include "estimator/step/kernel_table.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"

namespace stowage {
namespace {

constexpr const char* module_name = "libstowage_host_kernels.so";

Result<const HostKernelTable*> load() {
  std::error_code ignored;
  const std::vector<std::filesystem::path> folders = module_folders();
  for (const std::filesystem::path& folder : folders) {
    const std::filesystem::path module = folder / module_name;
    if (std::filesystem::exists(module, ignored)) return load_host_kernels(module);
  }
  return failure(fmt::format("the host kernels ('{}') are neither beside the program nor in "
                             "'{}'",
                             module_name, folders.back().string()),
                 "install the program with its lib/stowage folder");
}

std::vector<DataType> types_of(std::span<const TensorArgument> arguments) {
  std::vector<DataType> types;
  for (const TensorArgument& argument : arguments) types.push_back(argument.type);
  return types;
}

// With fewer elements, starting a thread takes longer than it saves.
constexpr std::int64_t elements_worth_a_thread = std::int64_t{1} << 18;

/// Runs a launch on the threads that every kernel has. Its indices do not depend on each other.
void run_in_parts(const kernels::Launch& launch) {
  const std::int64_t elements = launch.count * launch.elements;
  const std::int64_t threads = elements < elements_worth_a_thread ? 1 : host_kernel_threads;
  const std::int64_t parts = std::min(threads, launch.count);
  const auto run = [&](std::int64_t part) {
    launch.run(launch.values.data(), launch.count * part / parts,
               launch.count * (part + 1) / parts);
  };
  std::vector<std::jthread> others;
  for (std::int64_t part = 1; part < parts; ++part) others.emplace_back(run, part);
  if (parts > 0) run(0);
}

Result<void> run_own_kernel(const KernelCall& call) {
  const auto reads = types_of(call.reads), writes = types_of(call.writes);
  if (const auto problem = call_problem(call.kernel, {reads, writes}, KernelDevice::host)) {
    return failure(fmt::format("{}: {}", to_string(call.kernel), *problem));
  }
  const auto launches = kernels::launches_of(call, kernels::Arithmetic::host);
  if (!launches) return tl::unexpected(launches.error());
  for (const kernels::Launch& launch : *launches) {
    run_in_parts(launch);
  }
  return {};
}

}  // namespace

std::string_view host_kernels_build() { return STOWAGE_HOST_KERNELS_BUILD; }

Result<const HostKernelTable*> load_host_kernels(const std::filesystem::path& file) {
  // GNU's OpenMP reads this variable when it is loaded. Waiting threads should sleep, since kernels
  // are short and the machine may be shared. A value that the user has set stays.
  setenv("OMP_WAIT_POLICY", "passive", 0);
  void* const module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    return failure(fmt::format("the host kernels do not load: {}", dlerror()),
                   "they need oneDNN (libdnnl2) and OpenBLAS (libopenblas0)");
  }
  const auto entry = reinterpret_cast<HostKernelsEntry>(dlsym(module, host_kernels_entry));
  if (entry == nullptr) {
    return failure(fmt::format("'{}' holds no host kernels", file.string()));
  }
  // Older modules do not have this function.
  const auto build =
      reinterpret_cast<HostKernelsBuildEntry>(dlsym(module, host_kernels_build_entry));
  const std::string_view found = build == nullptr ? "unknown" : build();
  if (found != host_kernels_build()) {
    return failure(
        fmt::format("the host kernels in '{}' are of build {}, the program is of build {}",
                    file.string(), found, host_kernels_build()),
        "build or install the program and its lib/stowage folder together");
  }
  entry()->set_threads(host_kernel_threads);
  return entry();
}

Result<const HostKernelTable*> host_kernels() {
  static const Result<const HostKernelTable*> loaded = load();
  return loaded;
}

Result<void> run_host_kernel(const KernelCall& call) {
  if (kernels::has_row(call.kernel)) return run_own_kernel(call);
  const auto kernels = host_kernels();
  if (!kernels) return tl::unexpected(kernels.error());
  std::string error;
  if (!(*kernels)->run(call, error)) return failure(error);
  return {};
}

}  // namespace stowage
