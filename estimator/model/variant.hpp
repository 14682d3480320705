// Variant: a description that consists of another description (its base) with other arguments.
//
//   model: resnet101
//   source: torchvision.models.resnet101
//   based_on: resnet50            # a catalogue name, or a file in this file's folder
//   arguments: {layers3: 23}      # instead of the base's defaults
//   symbols: {seq: 2048}
//
// A base may itself be a variant. find_model() resolves all of them to one description and the
// options to read it with, so that no later stage knows of variants.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_options.hpp"

namespace stowage {

inline constexpr int longest_variant_chain = 8;

struct Variant {
  std::string base;
  SourceSpan base_span;
  ModelOptions options;  ///< name, source, arguments with their places
};

/// Whether a line of the text starts with `based_on:`. Cheap, and true for every variant.
[[nodiscard]] bool may_be_variant(const SourceText& source);
/// Errors: an unknown key, a repeated argument, a value that is not a scalar.
[[nodiscard]] Result<Variant> read_variant(const SourceTextPtr& source);

}  // namespace stowage
