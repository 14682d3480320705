// The question of a plan for PyTorch, as its file keeps it: by the settings' names, so that an
// export or a validation can ask it again.
//
// A file or a folder is named from the folder in which the plan lies, "./step.json",
// "../hosts/big.yaml", unless it was named from the root. So a plan and its step may be moved
// together, and are found from any folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "answers/subject/named_plan.hpp"
#include "cli/options/advice.hpp"
#include "cli/options/arguments.hpp"
#include "cli/options/request.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// What the words say of the model, the step, the card and the host, but for the batch, which the
/// plan says itself. `plan`: the plan's file; "-": files are named as they were typed. None: the
/// model came through a pipe; a word cannot stand in a plan's file.
[[nodiscard]] std::optional<PlannedQuestion> asked_question(const TypedWords& typed,
                                                            const std::string& plan);

/// The same as words of a command that is asked about the plan: what `command` does not take of it
/// is left out. `typed`: what is given beside the plan, whose folder of configurations counts.
/// Errors: the plan has no question; a setting that no plan is made with, or not with these values;
/// a file that is not there.
[[nodiscard]] Result<Arguments> words_of(const NamedPytorchPlan& named, std::string_view command,
                                         const Arguments& typed);

/// The same as a question for the plan. `moved`: the model's or step's file, where it lies
/// elsewhere now; empty: where the plan says.
[[nodiscard]] Result<PlanQuestion> question_of_plan(const NamedPytorchPlan& named,
                                                    const std::string& moved,
                                                    const Arguments& typed);

}  // namespace stowage
