// What the file and the command line say of the step besides the network's sizes: the head, the
// attention function, the version of transformers, the checkpoint's format.
#pragma once

#include <string>

#include "estimator/huggingface/attention_choice.hpp"
#include "estimator/huggingface/families.hpp"
#include "estimator/import/imported_model.hpp"

namespace stowage {

struct StatedSettings {
  Head head = Head::none;
  AttentionChoice attention;
  LibraryVersion version = newest_known_version;
  bool is_version_asked = false;  ///< and not the file's, or the newest that is known
  std::string version_source;     ///< ", which the file states"; empty: the newest that is known
  std::string class_name;         ///< "LlamaForCausalLM"
  std::string precision;          ///< the checkpoint's format, where it is the usual one; or empty
  std::int64_t labels = 2;
};

/// Errors: values of --set that are none; a class, a version or a format in the file that is not
/// read.
[[nodiscard]] Result<StatedSettings> stated_settings(ConfigReader& config, const Family& family,
                                                     const ImportOptions& options);

/// The arguments that --set reaches, and `train`.
void declare_settings(DescriptionText& text, const StatedSettings& stated, const Family& family);

}  // namespace stowage
