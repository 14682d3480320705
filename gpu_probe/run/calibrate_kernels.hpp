// What kernels of each kind reach on a backend, from the kernels of shipped models: the rates that
// plans for the machine are timed with (planner/problem/fit_rates.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "estimator/card/card.hpp"
#include "gpu_probe/backend/backend.hpp"
#include "planner/problem/fit_rates.hpp"

namespace stowage {

/// A training step whose kernels are timed.
struct SampledStep {
  std::string model;  ///< a file, or a name of the catalogue
  std::int64_t batch = 1;
  Precision precision = Precision::fp32;
};

/// Convolutions of all kinds and transformers, each small and large, in fp32 and, from compute
/// capability 8.0 on, in bf16 (before: fp16).
[[nodiscard]] std::vector<SampledStep> default_samples(double compute_capability);

struct CalibratedKernels {
  FittedRates fitted;
  std::int64_t kernels = 0;           ///< that were timed
  std::vector<std::string> left_out;  ///< steps, with the reason: "bert-base in bf16: ..."
};

/// `card`: with the rates that were measured of it, to which the shares are. `models`: the
/// catalogue's folder. `most`: the memory that may be used. Errors: a model that cannot be read, or
/// no step could be timed (the first one's reason).
[[nodiscard]] Result<CalibratedKernels> calibrate_kernels(Backend& backend, const Card& card,
                                                          std::span<const SampledStep> samples,
                                                          const std::string& models, Bytes most);

/// As `kernel_latency:` and `kernel_shares:` of a calibration (docs/gpus.md).
[[nodiscard]] std::string kernel_shares_yaml(const CalibratedKernels& kernels);

}  // namespace stowage
