#include "gpu_probe/kernels/rows/rows.hpp"

#include "estimator/step/kernel_table.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {
namespace {

using Row = Launches (*)(const KernelCall& call, Arithmetic arithmetic);

// In the order of Kernel; null: the kernel is not one of our own.
constexpr Row rows[] = {
#define STOWAGE_FUNCTION(name, ...) name,
#define STOWAGE_NO_FUNCTION(...) nullptr,
    STOWAGE_KERNELS(STOWAGE_FUNCTION, STOWAGE_NO_FUNCTION, STOWAGE_NO_FUNCTION)
#undef STOWAGE_FUNCTION
#undef STOWAGE_NO_FUNCTION
        nullptr,  // foreign
};

Row row_of(Kernel kernel) { return rows[static_cast<std::size_t>(kernel)]; }

}  // namespace

bool has_row(Kernel kernel) { return row_of(kernel) != nullptr; }

Result<Launches> launches_of(const KernelCall& call, Arithmetic arithmetic) {
  try {
    return row_of(call.kernel)(call, arithmetic);
  } catch (const KernelError& refusal) {
    return failure(fmt::format("{}: {}", to_string(call.kernel), refusal.what()));
  }
}

}  // namespace stowage::kernels
