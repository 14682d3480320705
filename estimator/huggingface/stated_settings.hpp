// StatedSettings: what the file and the command line say besides the network's sizes: the head, the
// attention function, the version of transformers, the checkpoint's format.
#pragma once

#include <memory>
#include <string>

#include "estimator/huggingface/attention_choice.hpp"
#include "estimator/huggingface/families.hpp"
#include "estimator/import/imported_model.hpp"

namespace stowage {

struct StatedSettings {
  Head head = Head::none;
  AttentionChoice attention;
  LibraryVersion version = newest_known_version;
  bool is_version_asked = false;  ///< by the command line
  std::string version_source;  ///< for a note: ", which the file states"; empty: the newest known
  std::string class_name;      ///< "LlamaForCausalLM"
  /// In which weights are loaded where none is asked for ("bf16"); empty: fp32, or not stated.
  std::string precision;
  /// The checkpoint's own format, if it is one of 16 bits that is not loaded so.
  std::string unused_precision;
  std::shared_ptr<const CheckpointFormats> stored;  ///< null: not quantised
  std::int64_t labels = 2;
};

/// Errors: invalid values of --set; an unsupported class, version or format in the file.
[[nodiscard]] Result<StatedSettings> stated_settings(ConfigReader& config, const Family& family,
                                                     const ImportOptions& options);

/// Writes the arguments that --set can change, and `train`.
void declare_settings(DescriptionText& text, const StatedSettings& stated, const Family& family);

}  // namespace stowage
