// A variant: a description that is another one with other arguments.
//
//   model: resnet101
//   source: torchvision.models.resnet101
//   based_on: resnet50            # a catalogue name, or a file in this file's folder
//   arguments: {layers3: 23}      # instead of the base's defaults
//   symbols: {seq: 2048}
//
// A base may be a variant itself. What is left after all of them is one description and the options
// that it is read with, so that nothing after find_model knows of variants.
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

/// Whether the text says `based_on:` at the start of a line: cheap, and true for every variant.
[[nodiscard]] bool may_be_variant(const SourceText& source);
/// Errors: a key that a variant does not have, a repeated argument, a value that is no scalar.
[[nodiscard]] Result<Variant> read_variant(const SourceTextPtr& source);

}  // namespace stowage
