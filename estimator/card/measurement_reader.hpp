// The `measurements:` of a card file or a calibration: what processes were seen to take.
//
//   measurements:
//     - {runtime: pytorch, cuda: 12.1, loading: eager, context: 0.92 GiB, source: "..."}
//
// runtime, cuda, source and at least one of context, cublas and cudnn must be there; loading is
// what that CUDA and runtime do by themselves where it is not.
#pragma once

#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/card/card.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

/// Mistakes go to `errors`, each with its place.
[[nodiscard]] std::vector<ProcessMeasurement> read_measurements(const SourceTextPtr& source,
                                                                const YamlNode& list,
                                                                Diagnostics& errors);

}  // namespace stowage
