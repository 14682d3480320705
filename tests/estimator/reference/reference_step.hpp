// Our step under a reference's settings: its precision, its training loop, one of its optimizers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "tests/estimator/reference/reference_model.hpp"

namespace stowage::reference {

/// Our description, its loss in the model as in the reference's loop, which has output and loss
/// from one call.
[[nodiscard]] ModelGraph traced_model(const ReferenceModel& reference);

/// `optimizer` as the reference calls it: "sgd-momentum".
[[nodiscard]] LoweringSettings settings_of(const ReferenceModel& reference,
                                           const std::string& optimizer);

/// At the reference's batch, without workspaces.
[[nodiscard]] SizedStep traced_step(const ModelGraph& model, const ReferenceModel& reference,
                                    const std::string& optimizer);

/// What the reference's script holds throughout and our description does not name.
[[nodiscard]] Bytes held_besides(const ReferenceModel& reference);

/// The most of `live` (by node) in a reference's phase: "forward", with the loss, "backward" or
/// "optimizer".
[[nodiscard]] std::int64_t phase_peak(const SizedStep& step, const std::vector<Bytes>& live,
                                      const std::string& phase);

}  // namespace stowage::reference
