// How a check is shown: its tables, its verdict, its JSON.
#pragma once

#include <string>
#include <vector>

#include "answers/sizing/verdict.hpp"
#include "cli/output/report.hpp"
#include "cli/output/table.hpp"
#include "estimator/check/check.hpp"
#include "estimator/check/evaluation.hpp"
#include "estimator/check/rule_of_thumb.hpp"

namespace stowage {

/// Classes at the peak, then the runtime's rows: the first total is tensor bytes, the second what
/// nvidia-smi shows.
[[nodiscard]] Table breakdown_table(const CheckReport& report);
/// The card's CUDA total, less what is in use and what is to stay free.
[[nodiscard]] Table room_table(const CheckReport& report, const CheckSettings& settings);
[[nodiscard]] Table largest_tensors(const CheckReport& report);
/// The verdict and the peak's sums in front of the tensors, told apart by a first column "row":
/// what CSV holds.
[[nodiscard]] Table verdict_listing(const CheckReport& report, const Table& tensors);
/// The largest few, the rest as one row.
[[nodiscard]] Table folded_tensors(const Table& all);
[[nodiscard]] Table phase_table(const CheckReport& report);
/// What each GPU's process keeps on the host of what is offloaded, with its sum.
[[nodiscard]] Table host_table(const CheckReport& report);
/// TensorFlow's logical devices, and their sum where there are several.
[[nodiscard]] Table pool_table(const CheckReport& report);
[[nodiscard]] Table fallback_table(const CheckReport& report, bool all);
/// The rule of thumb's rows, with the step's own figures beside them.
[[nodiscard]] Table rule_table(const RuleOfThumb& rule, const CheckReport& report);

/// What the JSON of every answer about a card's memory begins with: `device`, `verdict`,
/// `device_bytes`. It has `headroom_bytes` further on.
[[nodiscard]] Json::Object verdict_json(const Verdict& verdict, const Card& card);
[[nodiscard]] Json::Object check_json(const CheckReport& report, const Card& card);
[[nodiscard]] Json rule_json(const RuleOfThumb& rule);
[[nodiscard]] Json evaluation_json(const EvaluationReport& evaluation);

/// The options that make TensorFlow's pools so: "--memory-limit 1723MiB", "--memory-growth".
[[nodiscard]] std::vector<std::string> pool_options(const PoolAdvice& advice);

/// " with PyTorch's kernels": whose kernels a verdict speaks of; "" of other runtimes.
[[nodiscard]] std::string_view kernels_in_words(Runtime runtime);
/// Fits or not, by how much, and the culprit. `whose`: kernels_in_words, said where it does not
/// fit.
void say_verdict(const CheckReport& report, const Card& card, std::string_view whose, Report& out);

}  // namespace stowage
