// ModelOptions: settings with which a description is read, from the command line or a variant.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "estimator/base/diagnostic.hpp"
#include "estimator/base/precision.hpp"
#include "estimator/model/fine_tuning.hpp"

namespace stowage {

struct ModelOptions {
  std::optional<std::int64_t> seq;  ///< absent: the description's default
  /// Values of the model's arguments and symbols.
  std::map<std::string, std::string> arguments = {};
  std::optional<Precision> precision = {};  ///< absent: the description's, else fp32
  FineTuningTexts fine_tuning = {};         ///< absent: the description's
  /// How the checkpoint's weights are quantised, as an importer read it; null: not.
  std::shared_ptr<const CheckpointFormats> stored = {};
  std::string name = {};    ///< the variant's; empty: the description's
  std::string source = {};  ///< the variant's; empty: the description's
  /// The place of each argument, for messages; absent: the command line.
  std::map<std::string, SourceSpan> places = {};
};

}  // namespace stowage
