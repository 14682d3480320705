// Reads the lists of a card file or a calibration: `measurements:`, memory of processes outside the
// allocator; `observed_totals:`; and `kernel_shares:`, the shares of the rates that kernels reach.
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
// Required keys: of a measurement runtime, cuda, source and at least one of context, cublas and
// cudnn (`loading` defaults to that of the CUDA and the runtime); of a total source, and nvml or
// cuda; of a share kind, each at most once, and arithmetic or bandwidth.
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
