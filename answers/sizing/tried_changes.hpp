// What would help where not even a batch of 1 fits: changes of the step that are tried before they
// are advised.
//
// Each change is sized as the question's own step is, at the smallest batch. First single changes,
// cheapest first: those by which the same numbers are computed, then other number formats, then
// another training. Where none of them does, one more at a time together until they fit, less those
// that are then not needed; some are of use beside others alone. At most most_tries are sized, so
// that the time of a check stays bounded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "answers/question/step_question.hpp"
#include "answers/subject/step_setup.hpp"

namespace stowage {

inline constexpr int most_tries = 30;

struct TriedChange {
  /// Settings by name, as they are typed: {"checkpoint", "all"}; "" of a flag.
  std::map<std::string, std::string> settings;
  std::string effect;           ///< "blocks run again in backward"
  bool other_training = false;  ///< what is trained, or on how much, is another thing
  Bytes device_bytes;
  bool fits = false;
};

struct TriedChanges {
  std::int64_t batch = 1;  ///< at which they were tried
  int tried = 0;           ///< with those that were of no use
  /// Single ones that take less than the step as it is, in their order. Where none of them fits,
  /// the last is several together: as few as fit, or all.
  std::vector<TriedChange> changes;
};

/// Empty for a step's file, and for a model that came through a pipe, which cannot be read again.
[[nodiscard]] TriedChanges try_changes(const StepQuestion& question, const StepSetup& setup);

}  // namespace stowage
