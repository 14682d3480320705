#include "estimator/step/saved_storages.hpp"

#include <algorithm>

namespace stowage {

std::vector<bool> kept_by_autograd(const StepGraph& step) {
  std::vector<bool> kept(step.storages.size(), false);
  for (const SavedTensor& saved : step.saved) {
    const Storage& storage = step.storage(saved.storage);
    kept[saved.storage.index()] = storage.persistence == Persistence::transient &&
                                  storage.storage_class != StorageClass::temporary &&
                                  !step.script_holds.of(saved.storage).outlives_step();
  }
  // torch.utils.checkpoint itself keeps what it gives a region's second run, where no call of a
  // hook is known, and a script's variables and calls may hold what autograd saves until backward
  // has begun.
  const auto is_held = [&](const SavedTensor& saved) {
    if (!saved.call || !saved.call->held_until.valid()) return false;
    const Phase phase = step.node(saved.call->held_until).phase;
    return phase == Phase::backward || phase == Phase::update;
  };
  for (const SavedTensor& saved : step.saved) {
    const bool is_kept =
        (saved.role == region_input_role && !saved.call) || saved.role == kept_result_role;
    if (is_kept || is_held(saved)) kept[saved.storage.index()] = false;
  }
  for (const ScriptVariable& variable : step.micro_batch.variables) {
    kept[variable.storage.index()] = false;
  }
  // Of a recorded step of several passes (a GAN's, one that accumulates), no call of a hook is
  // known for what the later ones save.
  if (std::ranges::any_of(step.saved, is_recorded_call)) {
    for (const SavedTensor& saved : step.saved)
      if (!saved.call) kept[saved.storage.index()] = false;
  }
  return kept;
}

}  // namespace stowage
