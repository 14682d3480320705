// This machine as the planner's Host.
//
// Memory and cores are read. Nothing is measured: rates are nominal, those of a core times the
// number of cores:
//   fp32, sustained         60 GFLOP/s a core with AVX-512, 30 with AVX2, 8 otherwise
//   memory bandwidth        10 GB/s a core, at most 100
//   pinned memory           half of what there is
//   a kernel call 2 us, a transfer 10 us; link rates are the card's
// `stowage plan --host FILE` takes measured rates.
#pragma once

#include <string>

#include "gpu_probe/device/probe.hpp"
#include "planner/problem/host.hpp"

namespace stowage {

[[nodiscard]] Host this_host();

/// As this_host(), from a probed host and its /proc/cpuinfo. Exposed for tests.
[[nodiscard]] Host host_from(const ProbedHost& probed, const std::string& cpuinfo);

}  // namespace stowage
