// ModelOptions: what a description is read with besides its own text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "estimator/base/diagnostic.hpp"
#include "estimator/base/precision.hpp"
#include "estimator/model/fine_tuning.hpp"

namespace stowage {

struct ModelOptions {
  std::optional<std::int64_t> seq;  ///< absent: the description's default
  /// Values of the model's own arguments and symbols: given by the user, and a variant's.
  std::map<std::string, std::string> arguments = {};
  std::optional<Precision> precision = {};  ///< absent: the description's, else fp32
  FineTuningTexts fine_tuning = {};         ///< absent: the description's
  std::string name = {};                    ///< of a variant; empty: the description's
  std::string source = {};                  ///< of a variant; empty: the description's
  /// Where an argument is written, for the message about it; absent: on the command line.
  std::map<std::string, SourceSpan> places = {};
};

}  // namespace stowage
