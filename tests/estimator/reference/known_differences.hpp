// Where PyTorch's step holds what ours does not, or the other way round: every such difference by
// name, with its reason and its exact bytes. What is not listed must be equal, and what is listed
// must make a difference to each model that it concerns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/memory/step_memory.hpp"
#include "tests/estimator/reference/reference_model.hpp"

namespace stowage::reference {

struct AccountedSaved {
  std::vector<SavedStorages> saved;
  std::string without_effect;  ///< known differences that changed nothing; should be empty
};
/// What PyTorch saves, changed by the known differences into what ours has to save.
[[nodiscard]] AccountedSaved accounted_saved(const ReferenceModel& reference);

struct AccountedLive {
  std::vector<Bytes> live;
  std::string without_effect;
};
/// Our live bytes at each node of `step` as step_memory has them under `rules`, with what PyTorch
/// holds besides.
[[nodiscard]] AccountedLive accounted_live(const ReferenceModel& reference, const SizedStep& step,
                                           const MemoryRules& rules, std::vector<Bytes> live);

}  // namespace stowage::reference
