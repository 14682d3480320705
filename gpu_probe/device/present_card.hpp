// The GPU that is in this machine, as a Card: `--gpu here`.
//
// It is the first that CUDA shows, which is the one that a program on this machine takes. What the
// driver says (name, totals, compute capability) is the driver's; the rest is the catalogue's, or
// by rule where the catalogue has no such card.
#pragma once

#include <string>

#include "estimator/card/card.hpp"
#include "gpu_probe/device/probe.hpp"

namespace stowage {

/// The index in probe.gpus of the first GPU that CUDA shows. Errors: there is none, and why (no
/// driver, hidden by CUDA_VISIBLE_DEVICES, libcuda cannot be asked).
[[nodiscard]] Result<std::size_t> present_gpu(const Probe& probe);

/// A GPU that the catalogue lacks: totals and compute capability are the driver's.
[[nodiscard]] Card card_by_rule(const ProbedGpu& gpu);

struct PresentCard {
  Card card;
  Bytes in_use;      ///< by others, of the card's cuda_total
  std::string note;  ///< what was assumed; empty: nothing
};

/// `directory`: the catalogue's. Errors: those of present_gpu; a malformed file of the catalogue.
[[nodiscard]] Result<PresentCard> present_card(const Probe& probe, const std::string& directory);

}  // namespace stowage
