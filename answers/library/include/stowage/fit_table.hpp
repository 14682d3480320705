// What fits where: several models, several cards, or both.
#pragma once

#include <cstdint>
#include <optional>
#include <stowage/message.hpp>
#include <stowage/model.hpp>
#include <string>
#include <vector>

namespace stowage {

struct FitTableQuestion {
  StepSpec step;                      ///< its model's source is not looked at
  std::vector<std::string> models;    ///< sources; a folder stands for the models in it
  std::string gpus;                   ///< "rtx3090,t4", or "all"
  std::optional<std::int64_t> batch;  ///< that is asked about; absent: the largest is looked for
};

struct FitTableRow {
  std::string model, gpu;
  bool has_answer = false;  ///< false: the notes say why
  bool fits = false;        ///< at `at_batch`
  std::int64_t device_bytes = 0, available_bytes = 0, headroom_bytes = 0;
  std::int64_t at_batch = 0;
  std::int64_t largest = 0, recommended = 0;
};

struct FitTableAnswer {
  std::vector<FitTableRow> rows;  ///< model by model, card by card
  Messages notes;
};

/// Errors: a card that is not known, a folder without models.
[[nodiscard]] Answered<FitTableAnswer> ask(const FitTableQuestion& question);

}  // namespace stowage
