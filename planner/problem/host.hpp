// Host: the CPU's side of the link, as `--host FILE` or the probe of this machine describes it.
#pragma once

#include <string>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct Host {
  std::string name;
  Bytes memory;                 ///< physical
  Bytes pinned_limit;           ///< the part that may be page-locked (half by default)
  double cpu_flops = 0;         ///< fp32, sustained, all cores, a second
  double memory_bandwidth = 0;  ///< bytes a second
  double kernel_latency = 0;    ///< seconds a kernel call
  double h2d_bandwidth = 0;     ///< 0: the card's own figure
  double d2h_bandwidth = 0;
  double link_latency = 0;  ///< seconds a transfer
  std::string source;       ///< "configs/hosts/generic.yaml", "this machine"
};

/// Reads a host file. Errors: what cannot be read, with its place in the file.
[[nodiscard]] Result<Host> load_host(SourceTextPtr source);

/// `of` with the rates that a calibration measured (`host:` of the file, docs/gpus.md); unchanged
/// where the calibration is of a card alone. Errors: what cannot be read, with its place in the
/// file.
[[nodiscard]] Result<Host> calibrated_host(const SourceTextPtr& calibration, Host of);

}  // namespace stowage
