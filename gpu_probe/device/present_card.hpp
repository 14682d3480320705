// PresentCard: the GPU of this machine as a Card (`--gpu here`).
//
// It is the first GPU that CUDA shows, which a program on this machine would use. Name, totals and
// compute capability come from the driver. The other figures come from the catalogue or, where the
// catalogue does not have the card, from rules.
#pragma once

#include <string>

#include "estimator/card/card.hpp"
#include "gpu_probe/device/probe.hpp"

namespace stowage {

/// The index in probe.gpus of the first GPU that CUDA shows. Errors: there is none, with the reason
/// (no driver, hidden by CUDA_VISIBLE_DEVICES, libcuda cannot be asked).
[[nodiscard]] Result<std::size_t> present_gpu(const Probe& probe);

/// A card for a GPU that the catalogue does not have: totals and compute capability from the
/// driver, the rest by rule.
[[nodiscard]] Card card_by_rule(const ProbedGpu& gpu);

struct PresentCard {
  Card card;
  Bytes in_use;      ///< the part of the card's cuda_total that others use
  std::string note;  ///< what was assumed; "": nothing
};

/// `directory`: the catalogue's folder. Errors: those of present_gpu; a malformed file of the
/// catalogue.
[[nodiscard]] Result<PresentCard> present_card(const Probe& probe, const std::string& directory);

}  // namespace stowage
