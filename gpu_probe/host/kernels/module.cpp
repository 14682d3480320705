// The module's entry: the functions of the table's kernels. What they throw is returned as text.
#include "gpu_probe/host/kernels/module.hpp"

#include <cblas.h>
#include <omp.h>

#include <exception>
#include <vector>

#include "estimator/step/kernel_table.hpp"
#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

// In the order of Kernel; null: the kernel has no function here.
constexpr KernelFunction functions[] = {
#define STOWAGE_FUNCTION(name, ...) name,
#define STOWAGE_NO_FUNCTION(...) nullptr,
    STOWAGE_KERNELS(STOWAGE_NO_FUNCTION, STOWAGE_FUNCTION, STOWAGE_NO_FUNCTION)
#undef STOWAGE_FUNCTION
#undef STOWAGE_NO_FUNCTION
        nullptr,  // foreign
};

std::vector<DataType> types_of(std::span<const TensorArgument> arguments) {
  std::vector<DataType> types;
  for (const TensorArgument& argument : arguments) types.push_back(argument.type);
  return types;
}

bool run(const KernelCall& call, std::string& error) {
  try {
    const KernelFunction function = functions[static_cast<std::size_t>(call.kernel)];
    require(function != nullptr, "the host kernels have no such kernel");
    const auto reads = types_of(call.reads), writes = types_of(call.writes);
    const auto problem = call_problem(call.kernel, {reads, writes}, KernelDevice::host);
    require(!problem, "{}", problem.value_or(""));
    function(call);
    return true;
  } catch (const std::exception& refusal) {
    error = fmt::format("{}: {}", to_string(call.kernel), refusal.what());
    return false;
  }
}

void set_threads(int threads) {
  omp_set_num_threads(threads);
  openblas_set_num_threads(threads);
}

constexpr HostKernelTable table{run, set_threads};

}  // namespace
}  // namespace stowage::host

extern "C" __attribute__((visibility("default"))) const stowage::HostKernelTable*
stowage_host_kernels() {
  return &stowage::host::table;
}

extern "C" __attribute__((visibility("default"))) const char* stowage_host_kernels_build() {
  return STOWAGE_HOST_KERNELS_BUILD;
}
