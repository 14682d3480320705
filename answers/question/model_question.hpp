// ModelQuestion: which model is asked about, and what is said beside its description.
#pragma once

#include <optional>
#include <string>

#include "answers/question/config_directory.hpp"
#include "estimator/model/model_options.hpp"

namespace stowage {

struct ModelQuestion {
  std::string source;  ///< a file, "-" for stdin, or a name from the catalogue
  ModelOptions options;
  ConfigDirectory configs;
  std::optional<std::string> loss = {};  ///< of a file of another format: a catalogue row
  bool allow_unknown = false;            ///< as above: operators of no row are counted
};

}  // namespace stowage
