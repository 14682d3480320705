// The lists of a card file or a calibration: `measurements:`, what processes were seen to take,
// `observed_totals:`, which totals were seen, and `kernel_shares:`, what kernels were seen to
// reach.
//
//   measurements:
//     - {runtime: pytorch, cuda: 12.1, loading: eager, context: 0.92 GiB, source: "..."}
//
//   observed_totals:
//     - {cuda: 2144010240 B, source: "a listing of 2016, driver 352"}
//
//   kernel_shares:
//     - {kind: normalization, bandwidth: 0.64}
//
// Of a measurement runtime, cuda, source and at least one of context, cublas and cudnn must be
// there; loading is what that CUDA and runtime do by themselves where it is not. Of a total source
// and nvml or cuda. Of a share kind, once, and arithmetic or bandwidth.
#pragma once

#include <vector>

#include "estimator/card/card.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

[[nodiscard]] std::vector<ProcessMeasurement> read_measurements(const YamlNode& list,
                                                                Mistakes& mistakes);
[[nodiscard]] std::vector<ObservedTotal> read_observed_totals(const YamlNode& list,
                                                              Mistakes& mistakes);

[[nodiscard]] std::vector<KernelShare> read_kernel_shares(const YamlNode& list, Mistakes& mistakes);

}  // namespace stowage
