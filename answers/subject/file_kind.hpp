// What a file holds, by its content: for the message to someone who named a file of another kind.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// A description's other readings: a plan of either kind, a card's file, a host's.
enum class StowageFile { none, plan, pytorch_plan, card, host };
/// By the keys in the text's first lines.
[[nodiscard]] StowageFile stowage_file(std::string_view text);

/// "an ONNX model", "gzip-compressed"; nullopt: text, of no kind that is known. The first few KiB
/// are enough.
[[nodiscard]] std::optional<std::string> foreign_kind(std::string_view content);

/// The mistake of naming `source` where a model is wanted; nullopt: it may be a description.
[[nodiscard]] std::optional<Diagnostic> not_a_model(const SourceText& source);
/// The mistake of naming `source` where a plan is wanted; nullopt: it may be a plan.
[[nodiscard]] std::optional<Diagnostic> not_a_plan(const SourceText& source);

/// The mistake of exporting a program, which the Python part does; nullopt: it is none.
[[nodiscard]] std::optional<Diagnostic> program_to_export(const SourceText& source);

}  // namespace stowage
