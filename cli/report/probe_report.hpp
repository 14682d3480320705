// What `stowage probe` prints of a machine.
#pragma once

#include "cli/output/report.hpp"
#include "gpu_probe/device/probe.hpp"

namespace stowage {

[[nodiscard]] Report probe_report(const Probe& found);

}  // namespace stowage
