#include "gpu_probe/run/memory_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace stowage {
namespace {

// cuMemAlloc allocates whole pages.
constexpr Bytes whole_page = 2_MiB;

Check check_arena(const Plan& plan, const DeviceMemoryUse& use) {
  const std::int64_t taken = (use.loaded.free - use.with_arenas.free).count();
  const std::int64_t planned = plan.totals.arena.count();
  const std::int64_t allowed = std::max(whole_page.count(), planned / 100);
  return {"device memory", std::abs(taken - planned) <= allowed,
          fmt::format("{} bytes taken by the arena, {} planned; {} free before, {} with it, of {}",
                      taken, planned, use.loaded.free.count(), use.with_arenas.free.count(),
                      use.loaded.total.count())};
}

Check check_given_back(const DeviceMemoryUse& use) {
  return {"device memory given back", use.after.free >= use.loaded.free,
          fmt::format("{} bytes free before the arena and {} after it", use.loaded.free.count(),
                      use.after.free.count())};
}

/// Checks what lies outside the arena: context, kernels, libraries, other processes.
Check check_context(const Plan& plan, const DeviceMemoryUse& use) {
  Check check{"context and arena", true, {}};
  const Bytes used = use.with_arenas.total - use.with_arenas.free;
  check.detail = fmt::format("{} in use of the device by its driver", format_bytes(used));
  if (use.with_arenas.nvml_used) {
    check.detail += fmt::format(", {} by NVML", format_bytes(*use.with_arenas.nvml_used));
  }
  if (plan.inputs.available == Bytes()) {
    check.detail += "; not compared: the plan is for no card";
    return check;
  }
  const Bytes context = plan.inputs.card.cuda_total - plan.inputs.available;
  const Bytes planned = context + plan.totals.arena;
  check.passed = used <= planned + uncertain_context;
  check.detail += fmt::format("; {} planned: {} outside the arena, and the arena",
                              format_bytes(planned), format_bytes(context));
  return check;
}

}  // namespace

std::vector<Check> check_device_memory(const Plan& plan, const DeviceMemoryUse& use) {
  return {check_arena(plan, use), check_given_back(use), check_context(plan, use)};
}

}  // namespace stowage
