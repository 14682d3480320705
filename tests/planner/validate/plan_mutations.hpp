// Every small change to the text of a plan file, one at a time.
//
// A scalar of the head or a cell of a table becomes a little or much larger, negative, empty, or
// another word; rows are removed, doubled, and swapped with the next. Of the step's file numbers
// and texts are changed: a hash covers it, so that kinds are not told apart there.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace stowage::test {

struct Mutant {
  /// "inputs.card.name other", "residences.offset +1", "step.nodes number": what was changed,
  /// without the row, and how.
  std::string kind;
  std::string where;  ///< the line before and after
  std::string text;   ///< of the whole file
};

/// Deterministic. `visit` gets some thousand mutants of a small plan.
void visit_mutants(const std::string& plan, const std::function<void(const Mutant&)>& visit);

}  // namespace stowage::test
