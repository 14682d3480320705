#include "answers/exporting/pytorch_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "estimator/document/step_hash.hpp"
#include "estimator/rewrite/checkpoints.hpp"
#include "planner/problem/rates.hpp"
#include "planner/pytorch/module_regions.hpp"

namespace stowage {

namespace {

/// How the program shares the step out, or keeps its optimizer on the CPU, on a single GPU.
DataParallel sharing_of(ExportForm form, bool optimizer_on_cpu) {
  switch (form) {
    case ExportForm::fsdp:
      return {.fsdp = {.on = true}, .offload = optimizer_on_cpu ? Offload::all : Offload::none};
    case ExportForm::deepspeed:
    case ExportForm::accelerate:
    case ExportForm::axolotl:
    case ExportForm::trl:
      return optimizer_on_cpu ? DataParallel{.zero = 2, .offload = Offload::optimizer}
                              : DataParallel{};
    case ExportForm::megatron:
      return optimizer_on_cpu ? DataParallel{.zero = 1, .offload = Offload::optimizer}
                              : DataParallel{};
    default:
      return {};
  }
}

bool offloads_all_activations(ExportForm form) {
  return form == ExportForm::trl || form == ExportForm::axolotl;
}

class HookedStepSetup {
 public:
  explicit HookedStepSetup(const ExportQuestion& question)
      : form_(question.form), named_(*question.plan), plan_(question.plan->plan) {
    asked_.step = question.step;
    asked_.card = *question.card;
    asked_.batch = plan_.batch;
    if (!plan_.expandable_segments) return;
    AllocatorSettings allocator = asked_.step.process.allocator.value_or(AllocatorSettings{});
    allocator.expandable_segments = true;
    asked_.step.process.allocator = allocator;
  }

  Result<PlannedStep> run() && {
    if (!plan_.trains) {
      return failure(
          of_plan("a plan of an inference has no settings for an engine that trains", {}));
    }
    auto setup = set_up_check(asked_);
    if (!setup) return tl::unexpected(about_plan(std::move(setup.error()), named_));
    const std::int64_t batch = plan_.batch * plan_.micro_batches;
    const auto whole = size_step(setup->step.document.graph, batch, setup->workspaces.source());
    if (!whole) return tl::unexpected(about_plan(whole.error(), named_));
    if (step_hash(*whole) != plan_.step_hash) return failure(other_step());
    regions_ = module_regions(*whole, make_rates(setup->card.card, Host{}));
    const bool is_described = setup->step.model != nullptr;
    moves_activations_ = is_described && !plan_.offload.empty() && offloads_all_activations(form_);
    auto changed = is_described ? asked_anew() : rewritten(*std::move(setup));
    if (!changed) return tl::unexpected(std::move(changed.error()));
    return PlannedStep{.question = std::move(asked_),
                       .setup = *std::move(changed),
                       .reruns_blocks = !is_described && !plan_.checkpoint.empty(),
                       .unexpressed = unexpressed()};
  }

 private:
  [[nodiscard]] Diagnostic of_plan(std::string message, std::string hint) const {
    return {
        .message = std::move(message), .span = {.source = named_.source}, .hint = std::move(hint)};
  }

  [[nodiscard]] Diagnostic other_step() const {
    return of_plan(
        fmt::format("the plan is of another step than '{}' has now", asked_.step.model.source),
        "stowage plan makes one of the step as it is");
  }

  /// The description's step, with the plan's decisions as settings.
  Result<StepSetup> asked_anew() {
    FineTuningTexts& tuning = asked_.step.model.options.fine_tuning;
    if (!plan_.checkpoint.empty() && !tuning.checkpoint) tuning.checkpoint = "all";
    if (moves_activations_ && !tuning.offload_activations) tuning.offload_activations = "all";
    if (plan_.micro_batches > 1) asked_.step.wishes.accumulation = plan_.micro_batches;
    asked_.step.wishes.parallel = sharing_of(form_, plan_.optimizer_on_cpu);
    return set_up_check(asked_);
  }

  /// A step's file, whose graph is changed.
  Result<StepSetup> rewritten(StepSetup setup) {
    StepDocument& document = setup.step.document;
    StepGraph graph = *document.graph;
    if (!plan_.checkpoint.empty()) {
      std::vector<CheckpointRegion> regions;
      for (const ModuleRegion& region : regions_) regions.push_back(region.region);
      auto again = with_checkpoints(std::move(graph), regions);
      if (!again) return tl::unexpected(std::move(again.error()));
      graph = *std::move(again);
    }
    graph.settings.parallel = sharing_of(form_, plan_.optimizer_on_cpu);
    if (graph.settings.parallel.fsdp.on) {
      return failure(of_plan("a step's file is not sized with FSDP",
                             "`to` accelerate writes a configuration without it"));
    }
    document.graph = std::make_shared<const StepGraph>(std::move(graph));
    document.accumulation = plan_.micro_batches;
    auto sizing = sizing_step(document);
    if (!sizing) return tl::unexpected(std::move(sizing.error()));
    setup.graph = *std::move(sizing);
    return setup;
  }

  [[nodiscard]] std::vector<std::string> unexpressed() const {
    std::vector<std::string> lines;
    if (moves_activations_) {
      lines.emplace_back(
          "which saved tensors leave the GPU, and when: `offload_activations` moves all of them");
    } else if (!plan_.offload.empty()) {
      lines.push_back(fmt::format("which saved tensors lie on the host, {} each way",
                                  format_bytes(plan_.offloaded_bytes())));
    }
    const auto is_block = [&](const std::string& name) {
      return std::ranges::find(regions_, name, &ModuleRegion::module) != regions_.end();
    };
    if (!std::ranges::all_of(plan_.checkpoint, is_block)) {
      lines.push_back(fmt::format("which modules run again ({}{}): here the {} repeated blocks do",
                                  plan_.checkpoint.front(),
                                  plan_.checkpoint.size() == 1
                                      ? ""
                                      : fmt::format(" and {} more", plan_.checkpoint.size() - 1),
                                  regions_.size()));
    } else if (!plan_.checkpoint.empty() && plan_.checkpoint.size() < regions_.size()) {
      lines.push_back(fmt::format("that {} of {} blocks run again: here all of them do",
                                  plan_.checkpoint.size(), regions_.size()));
    }
    if (!plan_.stream.empty()) {
      lines.push_back(fmt::format("that the parameters of {} are streamed",
                                  plan_.stream.size() == 1
                                      ? plan_.stream.front().module
                                      : fmt::format("{} blocks", plan_.stream.size())));
    }
    if (plan_.optimizer_on_cpu &&
        sharing_of(form_, plan_.optimizer_on_cpu).offload == Offload::none) {
      lines.emplace_back("updates on the CPU");
    } else if (!plan_.cpu_parameters.empty()) {
      const std::size_t count = plan_.cpu_parameters.size();
      lines.push_back(fmt::format("that only {} updated on the CPU: here all parameters are",
                                  count == 1 ? plan_.cpu_parameters.front() + " is"
                                             : fmt::format("{} parameters are", count)));
    }
    if (plan_.early_updates) {
      lines.emplace_back("updates as soon as gradients are whole: here they come after backward");
    }
    return lines;
  }

  ExportForm form_;
  const NamedPytorchPlan& named_;
  const PytorchPlan& plan_;
  CheckQuestion asked_;
  std::vector<ModuleRegion> regions_;
  bool moves_activations_ = false;
};

}  // namespace

bool takes_pytorch_plans(const ExportFormRow& row) {
  return row.is_sized && !row.is_picture && row.form != ExportForm::llama_cpp;
}

Result<PlannedStep> set_up_hooked_step(const ExportQuestion& question) {
  return HookedStepSetup(question).run();
}

}  // namespace stowage
