// The modules of a step that torch.utils.checkpoint can run again in backward.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "estimator/rewrite/checkpoints.hpp"
#include "planner/problem/rates.hpp"

namespace stowage {

/// The module of a layer that is one of a network's repeated blocks, by its path up to the first
/// number: "layer1.0" of "layer1.0.conv1"; "": the path has no number.
[[nodiscard]] std::string_view numbered_module(std::string_view path);

struct ModuleRegion {
  std::string module;  ///< its path; "features[0:5]": children of an nn.Sequential, 0 to 4
  CheckpointRegion region;
  Bytes saved;            ///< of the storages that its operators save and nothing else keeps
  double seconds = 0;     ///< of its forward kernels
  bool is_inner = false;  ///< lies in another region, whose second run checkpoints it
};

/// The repeated blocks, which are the parts of layers' paths up to their first number ("layer1.0",
/// "h.3"), in the order in which they run. Left out: a block whose forward kernels do not run one
/// after the other, as a module does that is called twice; one that writes to what was there before
/// it, or is given what a later kernel of forward writes to; one that saves a tensor which its
/// kernel writes to afterwards; one that saves nothing. O(nodes + saved).
[[nodiscard]] std::vector<ModuleRegion> module_regions(const SizedStep& step, const Rates& rates);

}  // namespace stowage
