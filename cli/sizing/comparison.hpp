// check and batch of several cards or models: one table, what fits where and how large a batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cli/options/command.hpp"
#include "cli/options/request.hpp"

namespace stowage {

/// cuDNN is asked for the workspaces of so many pairs of a model and a card at most, each as in an
/// answer for it alone (up to 2,000 questions, about 2 s the first time). Of more pairs than these
/// every one is answered by the documented rule.
inline constexpr std::size_t most_pairs_asking_cudnn = 8;

/// Whether that is asked: several models, a folder of them, a list of cards or all.
[[nodiscard]] bool is_comparison(const StepRequest& step, const CardRequest& card);

/// The table's answer for check (`batch`: its own, or each step's) or for batch (none). A model
/// that cannot be read has a row that says so; its mistakes go to the notes.
/// Exit code: `bad_input` where there is such a row; else `yes` where every model fits at least one
/// of the cards, and `clean_no` where one fits none.
/// Errors: of the command line; a card that is not known.
[[nodiscard]] Result<Answer> compare(const CheckRequest& request);
[[nodiscard]] Result<Answer> compare(const BatchRequest& request);

}  // namespace stowage
