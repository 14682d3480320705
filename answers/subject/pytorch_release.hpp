// What an older PyTorch does otherwise in a step.
//
// Steps are lowered as newest_pytorch runs them. Of the releases since oldest_pytorch, what is
// listed in docs/pytorch-versions.md as modelled is done otherwise; everything else is sized as the
// newest release's, and a note says so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "answers/question/step_question.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/card/software_stack.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/choose_step.hpp"

namespace stowage {

inline constexpr ReleaseVersion oldest_pytorch{1, 12};
/// Steps of the releases from here to newest_pytorch were traced or recorded.
inline constexpr ReleaseVersion oldest_measured_pytorch{2, 11};
inline constexpr ReleaseVersion newest_pytorch{2, 15};

/// A release that was asked for, or the usual one of the card.
struct PytorchRelease {
  ReleaseVersion version;
  bool is_asked = false;
};

/// A model as scripts of that release run it.
struct ModelOfRelease {
  std::optional<ModelGraph> changed;  ///< none: as described
  std::vector<std::string> changes;   ///< in words: "attention is written out"
};
/// Errors: with_written_out_attention's.
[[nodiscard]] Result<ModelOfRelease> model_of_release(const ModelGraph& model,
                                                      const ReleaseVersion& pytorch);

/// The step's settings in that release: LoweringSettings::efficient_takes_groups, the optimizer's
/// usual implementation, what zero_grad does. `changes`: added to, as above. Errors: the release
/// lacks the optimizer, or its fused implementation.
[[nodiscard]] Result<ChosenStep> step_of_release(ChosenStep chosen, const ReleaseVersion& pytorch,
                                                 std::vector<std::string>& changes);

/// An error if the release is older than any that is modelled, or lacks what the question asks for.
[[nodiscard]] Result<void> check_release(const PytorchRelease& release,
                                         const StepQuestion& question);

/// What is to be said of the release beside the answer.
[[nodiscard]] Diagnostics notes_on_release(const PytorchRelease& release,
                                           const std::vector<std::string>& changes);
/// The same of a step's file, whose calls are those that it was written with.
[[nodiscard]] Diagnostics notes_on_release(const PytorchRelease& release,
                                           const StepDocument& document);

/// A note if the CUDA release that was asked for is newer than any that is known.
[[nodiscard]] Diagnostics notes_on_cuda(const std::optional<ReleaseVersion>& asked);

}  // namespace stowage
