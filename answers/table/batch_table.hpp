// Rows of tables about batches: a check at one batch, or the search for the largest.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "answers/subject/asked_card.hpp"
#include "answers/table/table.hpp"

namespace stowage {

/// cuDNN is asked for the workspaces of so many pairs of a model and a card at most, each as in an
/// answer for it alone (up to 2,000 questions, about 2 s the first time). Of more pairs than these
/// every one is answered by the documented rule.
inline constexpr std::size_t most_pairs_asking_cudnn = 8;

/// The rows, steps, runtime and notes of a table of TableAtBatch or TableOfBatches cells.
[[nodiscard]] TableAnswer table_of_batches(const TableQuestion& question,
                                           const std::vector<std::string>& models,
                                           const std::vector<AskedCard>& cards);

}  // namespace stowage
