#include "planner/validate_pytorch/moved_updates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "estimator/rewrite/parameter_updates.hpp"
#include "planner/validate_pytorch/update_on_cpu.hpp"

namespace stowage {

namespace {

class CheckUpdates {
 public:
  CheckUpdates(const PytorchPlan& plan, const PlanPlaces& places, const StepDocument& document,
               const StepGraph& step)
      : plan_(plan), places_(places), document_(document), step_(step) {
    moved_.on_host.resize(step.gradients.size(), false);
  }

  PlannedUpdates run() && {
    if (plan_.optimizer_on_cpu) check_host();
    if (plan_.early_updates) check_early();
    moved_.early = plan_.early_updates;
    return {.check = verdict("update", wrong_, in_words()), .moved = std::move(moved_)};
  }

 private:
  void check_host() {
    if (const auto why = why_update_stays(step_)) {
      places_.note(wrong_, {"optimizer_on_cpu"}, "the update cannot run on the CPU: {}", *why);
    }
    if (plan_.micro_batches > 1) {
      places_.note(wrong_, {"optimizer_on_cpu"},
                   "gradients of several micro-batches add up on the GPU");
    }
    moved_.all_on_host = plan_.cpu_parameters.empty();
    moved_.some_on_host = !moved_.all_on_host;
    if (moved_.all_on_host) moved_.on_host.assign(moved_.on_host.size(), true);
    for (std::size_t i = 0; i < plan_.cpu_parameters.size(); ++i) take(i);
    const auto updates = parts();
    if (moved_.some_on_host && updates && updates->undivided) {
      places_.note(wrong_, {"optimizer_on_cpu", "parameters"}, "the update has no parts: {}",
                   *updates->undivided);
    }
  }

  void take(std::size_t i) {
    const std::string& name = plan_.cpu_parameters[i];
    const auto found = std::ranges::find(document_.parameters, name, &Parameter::name);
    if (found == document_.parameters.end()) {
      return places_.note(wrong_, {"optimizer_on_cpu", "parameters", i},
                          "'{}' is no parameter of the step", name);
    }
    const auto p = static_cast<std::size_t>(found - document_.parameters.begin());
    if (p >= step_.gradients.size() || !step_.gradients[p].storage.valid()) {
      return places_.note(wrong_, {"optimizer_on_cpu", "parameters", i}, "'{}' gets no gradient",
                          name);
    }
    moved_.on_host[p] = true;
  }

  void check_early() {
    if (const auto why = why_update_stays(step_)) {
      return places_.note(wrong_, {"updates"}, "updates cannot be early: {}", *why);
    }
    const auto updates = parts();
    if (updates && updates->late)
      places_.note(wrong_, {"updates"}, "updates cannot be early: {}", *updates->late);
    if (updates && updates->undivided) {
      places_.note(wrong_, {"updates"}, "the update has no parts: {}", *updates->undivided);
    }
  }

  /// None: why_update_stays() has said why.
  [[nodiscard]] std::optional<ParameterUpdates> parts() const {
    auto updates = parameter_updates(step_);
    return updates ? std::optional(*std::move(updates)) : std::nullopt;
  }

  [[nodiscard]] std::string in_words() const {
    const std::string_view when = plan_.early_updates ? ", each as its gradient comes" : "";
    if (!plan_.optimizer_on_cpu) return fmt::format("on the GPU{}", when);
    if (moved_.all_on_host) return fmt::format("on the CPU{}", when);
    return fmt::format("of {} parameters on the CPU{}", plan_.cpu_parameters.size(), when);
  }

  const PytorchPlan& plan_;
  const PlanPlaces& places_;
  const StepDocument& document_;
  const StepGraph& step_;
  MovedUpdates moved_;
  Violations wrong_;
};

}  // namespace

PlannedUpdates find_moved_updates(const PytorchPlan& plan, const PlanPlaces& places,
                                  const StepDocument& document, const StepGraph& step) {
  return CheckUpdates(plan, places, document, step).run();
}

}  // namespace stowage
