// What several commands read from the command line in the same way.
#pragma once

#include <string>

#include "cli/arguments.hpp"
#include "cli/config_directory.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

struct RequestedModel {
  SourceTextPtr source;
  ModelOptions options;
  ModelGraph graph;
};

/// The first positional, with --seq and --set.
[[nodiscard]] Result<RequestedModel> requested_model(const Arguments& arguments,
                                                     const ConfigDirectory& configs);

/// --mode and --optimizer over the description's own. Errors: training a model without a loss.
[[nodiscard]] Result<LoweringSettings> requested_lowering(const Arguments& arguments,
                                                          const ModelGraph& model,
                                                          KernelSet kernels);

}  // namespace stowage
