// Measures which share of a backend's rates kernels of each kind reach, by timing the kernels of
// shipped models. Plans for the machine are timed with these shares
// (planner/problem/fit_rates.hpp).
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
  std::string model;  ///< a file, or a model's name in the catalogue
  std::int64_t batch = 1;
  Precision precision = Precision::fp32;
};

/// Models with convolutions of all kinds and transformers, small and large, in fp32 and bf16 (in
/// fp16 below compute capability 8.0).
[[nodiscard]] std::vector<SampledStep> default_samples(double compute_capability);

struct CalibratedKernels {
  FittedRates fitted;
  std::int64_t kernels = 0;           ///< number of kernels that were timed
  std::vector<std::string> left_out;  ///< steps with the reason: "bert-base in bf16: ..."
};

/// `card`: has the measured rates, of which the shares are taken. `models`: the catalogue's folder.
/// `most`: the memory that may be used. Errors: a model cannot be read, or no step could be timed
/// (the first one's reason).
[[nodiscard]] Result<CalibratedKernels> calibrate_kernels(Backend& backend, const Card& card,
                                                          std::span<const SampledStep> samples,
                                                          const std::string& models, Bytes most);

/// The shares as `kernel_latency:` and `kernel_shares:` of a calibration (docs/gpus.md).
[[nodiscard]] std::string kernel_shares_yaml(const CalibratedKernels& kernels);

}  // namespace stowage
