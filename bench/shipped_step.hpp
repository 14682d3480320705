// shipped_step: the step of a shipped model on a shipped card, for the benches.
#pragma once

#include <optional>
#include <string>

#include "estimator/card/card_file.hpp"
#include "estimator/document/make_document.hpp"
#include "estimator/model/load_model.hpp"

namespace stowage {

struct ShippedStep {
  SourceTextPtr description;
  Card card;
  StepDocument document;
};

/// The step runs on Stowage's own kernels on that card, whatever `wishes` says about these.
[[nodiscard]] inline Result<ShippedStep> shipped_step(const std::string& name,
                                                      const std::string& card, StepWishes wishes,
                                                      std::optional<Precision> precision = {},
                                                      std::optional<std::int64_t> seq = {}) {
  auto source = find_model(name, STOWAGE_SOURCE_DIR "/configs/models");
  if (!source) return tl::unexpected(source.error());
  if (precision) source->options.precision = precision;
  if (seq) source->options.seq = seq;
  const auto model = load_model(source->source, source->options);
  if (!model) return tl::unexpected(model.error());
  const auto found = find_card(card, STOWAGE_SOURCE_DIR "/configs/gpus");
  if (!found) return tl::unexpected(found.error());
  wishes.kernels = KernelSet::stowage;
  wishes.in_place = true;
  wishes.compute_capability = found->card.compute_capability;
  const auto chosen = choose_step(*model, wishes);
  if (!chosen) return tl::unexpected(chosen.error());
  auto document = make_document(*model, *chosen, Runtime::stowage, {}, step_alone);
  if (!document) return tl::unexpected(document.error());
  return ShippedStep{source->source, found->card, *std::move(document)};
}

}  // namespace stowage
