// EngineStep: a step as configurations of other programs speak of it, and the file that one of them
// is given.
//
//   StepQuestion, StepDocument, ModelGraph -> EngineStep -> EngineFile
//
// A setting is never dropped silently: EngineStep lists every setting that the answer counts
// (`stated`), a writer of a format names those that its file says, and all others are listed beside
// the file, with where a script says them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answers/question/step_question.hpp"
#include "answers/subject/asked_step.hpp"
#include "estimator/step/lowering_settings.hpp"
#include "planner/export/settings_tree.hpp"

namespace stowage {

/// A setting that was counted: its field in the question, and its value.
struct StatedSetting {
  std::string field;  ///< "checkpoint"; of a description alone: "train: prefetch"
  std::string value;  ///< "every=2"; empty: it is on
};

struct EngineStep {
  std::string model;       ///< its name
  std::string source;      ///< the file, or the name, that was asked about
  std::int64_t batch = 1;  ///< of one GPU and one micro-batch
  std::int64_t accumulation = 1;
  std::int64_t seq = 0;  ///< 0: the model has no symbol `seq`
  Precision precision = Precision::fp32;
  LoweringSettings lowering;
  FineTuning fine_tuning;
  bool checkpoints_blocks = false;  ///< all repeated blocks, each whole
  bool checkpoints_other = false;   ///< some of them, other layers, or blocks selectively
  std::int64_t blocks = 0;          ///< checkpointed regions
  bool from_step_file = false;      ///< which does not say what its description was changed by
  std::vector<StatedSetting> stated;

  [[nodiscard]] const DataParallel& parallel() const { return lowering.parallel; }
  [[nodiscard]] bool states(std::string_view field) const;
};

/// Errors: none. `model`: null of a step's file.
[[nodiscard]] EngineStep engine_step(const StepQuestion& question, const AskedStep& asked,
                                     std::int64_t batch);

/// All blocks of a step's file run again, which its question cannot say.
void add_rerun_blocks(EngineStep& step);

struct EngineFile {
  std::string body;                    ///< without a comment on its head
  std::vector<std::string> head = {};  ///< lines of that comment that only this format has
  /// Fields of the settings that the file says, as StatedSetting has them.
  std::vector<std::string_view> said;
  std::vector<std::string> unsaid = {};  ///< settings that are listed though no step states them
  std::vector<std::string> remarks;      ///< what of a setting the file cannot say
  std::vector<std::string> uncounted;    ///< what the program does with memory that is not counted
};

/// The settings that the file does not say, a line each: "`checkpoint` all: the script says it,
/// with model.gradient_checkpointing_enable()".
[[nodiscard]] std::vector<std::string> unsaid_settings(const EngineStep& step,
                                                       const EngineFile& file);

/// "`zero` 3": a setting as texts name it.
[[nodiscard]] std::string named(const StatedSetting& setting);

}  // namespace stowage
