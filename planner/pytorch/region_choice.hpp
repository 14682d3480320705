// Chooses over the tree of a step's modules which regions torch.utils.checkpoint runs again.
//
// A region is a module that runs once, or children in a row of an nn.Sequential: "layer1.0",
// "features[0:5]". For a limit on what a region's inside saves, the tree is walked from its root: a
// module within the limit is a region, of a larger one the children are looked at, and those of an
// nn.Sequential are put together in rows as long as the limit allows. With all regions run again,
//
//   peak = what is saved outside of them + their inputs + the largest inside
//
// of saved tensors alone. A low limit has many inputs, a high one a large inside; the limit is
// taken with which the peak is least. Where regions of a low limit are checkpointed within those of
// a high one, the inputs of the inner ones are there in the outer one's second run alone, and what
// lies in both runs three times.
#pragma once

#include <vector>

#include "estimator/document/step_document.hpp"
#include "planner/pytorch/module_regions.hpp"

namespace stowage {

struct RegionChoice {
  /// None in another, in the order in which they run.
  std::vector<ModuleRegion> regions;
  /// Outer regions with inner ones in them; empty: the peak would be more than 0.9 of the above.
  std::vector<ModuleRegion> nested;
};

/// `modules` are the recorded step's; without any (a description, an older file) the regions are
/// module_regions'. Inputs are set. Deterministic. O(limits * (nodes + storages * depth)), with at
/// most 32 limits.
[[nodiscard]] RegionChoice choose_regions(const SizedStep& step, const Rates& rates,
                                          const std::vector<RecordedModule>& modules);

}  // namespace stowage
