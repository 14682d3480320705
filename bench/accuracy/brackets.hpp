// Brackets: the largest of a list of batches that ran, the next of which did not.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/accuracy/predict.hpp"

namespace stowage::accuracy {

struct Bracket {
  std::string model;
  Job job;                  ///< but for its batch
  std::int64_t ran = 0;     ///< the largest that ran
  std::int64_t failed = 0;  ///< the next step up; 0: `ran` is the largest that was tried
};

/// rtx3090_amp_batch_brackets.csv; `models` as in read_sets. Throws as read_csv.
[[nodiscard]] std::vector<Bracket> read_brackets(const std::filesystem::path& folder,
                                                 const std::filesystem::path& models);

struct BracketAnswer {
  bool ran_fits = false;
  bool failed_fits = false;

  /// Both as they were; of a ceiling the first.
  [[nodiscard]] bool hit(const Bracket& bracket) const {
    return ran_fits && !(bracket.failed > 0 && failed_fits);
  }
};
[[nodiscard]] BracketAnswer answer(Predictor& predictor, const Bracket& bracket,
                                   double context_mib);

}  // namespace stowage::accuracy
