#include "answers/subject/contradictions.hpp"

#include <fmt/format.h>

#include "answers/question/question_error.hpp"
#include "answers/subject/fsdp_text.hpp"
#include "estimator/base/grouped_digits.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

namespace {

class Contradictions {
 public:
  explicit Contradictions(const StepDocument& document)
      : document_(document), settings_(document.graph->settings) {}

  void of_model(const ModelOptions& options) {
    if (options.seq) {
      unless(*options.seq == document_.seq, fmt::format("`seq` {}", *options.seq),
             document_.seq > 0 ? fmt::format("seq {}", document_.seq) : "a model without seq");
    }
    if (options.precision) {
      unless(*options.precision == document_.precision,
             fmt::format("`precision` {}", to_string(*options.precision)),
             to_string(document_.precision));
    }
    if (!options.fine_tuning.empty()) {
      found_.push_back(question_error(
          "`lora`, `base`, `checkpoint`, `layer_dtype`, `chunked_loss`, `offload_activations` and "
          "`optimizer_in_backward` change a description, and this is a step that was made of one"));
    }
    if (!options.arguments.empty()) {
      found_.push_back(question_error(
          fmt::format("`set` {}: changes a description, and this is a step that was made of one",
                      options.arguments.begin()->first)));
    }
  }

  void of_step(const StepWishes& wishes) {
    if (wishes.mode) {
      unless(*wishes.mode == settings_.mode, fmt::format("`mode` {}", to_string(*wishes.mode)),
             to_string(settings_.mode));
    }
    of_optimizer(wishes);
    if (wishes.accumulation) {
      unless(*wishes.accumulation == document_.accumulation,
             fmt::format("`accumulation` {}", *wishes.accumulation),
             fmt::format("{} micro-batches", document_.accumulation));
    }
    if (wishes.layout) {
      unless(*wishes.layout == settings_.step.layout,
             fmt::format("`layout` {}", to_string(*wishes.layout)),
             to_string(settings_.step.layout));
    }
    const ConvolutionSettings& made = settings_.convolutions;
    unless(!wishes.convolutions.deterministic || made.deterministic, "`deterministic`",
           "any algorithms");
    unless(!wishes.convolutions.benchmark || made.benchmark, "`cudnn_benchmark`",
           "cudnn.benchmark off");
  }

  void of_runtime(Runtime asked) {
    // A step that makes room for every result may be told to run anywhere.
    const bool works = works_in_place(asked) || !settings_.in_place;
    unless(kernel_set_of(asked) == settings_.kernels && works,
           fmt::format("`runtime` {}", to_string(asked)), to_string(document_.runtime));
  }

  void of_usuals(const ExplicitDefaults& given, const StepWishes& wishes) {
    const DataParallel& made = settings_.parallel;
    if (given.gpus) {
      unless(wishes.parallel.gpus == made.gpus, fmt::format("`gpus` {}", wishes.parallel.gpus),
             fmt::format("{} GPU{}", made.gpus, made.gpus > 1 ? "s" : ""));
    }
    if (given.zero) {
      unless(wishes.parallel.zero == made.zero, fmt::format("`zero` {}", wishes.parallel.zero),
             fmt::format("stage {}", made.zero));
    }
    if (given.fsdp) {
      unless(wishes.parallel.fsdp == made.fsdp, "`fsdp` with these settings", fsdp_text(made.fsdp));
    }
    if (given.offload) {
      const bool same =
          wishes.parallel.offload == made.offload && wishes.parallel.pinned == made.pinned;
      unless(same, fmt::format("`offload` {}", to_string(wishes.parallel.offload)),
             fmt::format("{} offloaded{}",
                         made.offload == Offload::none ? "nothing" : to_string(made.offload),
                         made.pinned ? "" : ", not pinned"));
    }
    if (given.tf32) {
      const bool tf32 = settings_.convolutions.tf32;
      unless(wishes.convolutions.tf32 == tf32,
             fmt::format("`tf32` {}", wishes.convolutions.tf32 ? "on" : "off"),
             fmt::format("tf32 {}", tf32 ? "on" : "off"));
    }
  }

  void of_card(const Card& card) {
    if (!traits(settings_.kernels).dispatches_by_card) return;
    unless(card.compute_capability == settings_.compute_capability,
           fmt::format("{} has compute capability {:.1f}", card.name, card.compute_capability),
           fmt::format("{:.1f}", settings_.compute_capability));
  }

  [[nodiscard]] Diagnostics taken() && { return std::move(found_); }

 private:
  void of_optimizer(const StepWishes& wishes) {
    const OptimizerSettings& made = settings_.optimizer;
    if (!document_.not_updated.empty()) return of_missing_update(wishes);
    if (wishes.optimizer) {
      auto named = named_optimizer(*wishes.optimizer).value_or(OptimizerSettings{});
      named.implementation = made.implementation;
      named.master_weights = made.master_weights;
      const bool other_settings = named.name == made.name && named != made;
      unless(
          named == made, fmt::format("`optimizer` {}", *wishes.optimizer),
          fmt::format("{}{}", optimizer_text(made), other_settings ? " with other settings" : ""));
    }
    if (wishes.implementation) {
      OptimizerSettings wanted = made;
      wanted.implementation = *wishes.implementation;
      unless(implementation_of(wanted) == implementation_of(made),
             fmt::format("`optimizer_implementation` {}", to_string(*wishes.implementation)),
             to_string(implementation_of(made)));
    }
    if (wishes.master_gradients) {
      unless(made.master_weights == MasterWeights::weights_and_gradients, "`master_gradients`",
             "gradients in the parameters' format");
    }
  }

  /// Of a step without an update: `optimizer` adds one (asked_step.hpp), and is no contradiction.
  void of_missing_update(const StepWishes& wishes) {
    if (wishes.implementation && !wishes.optimizer) {
      found_.push_back(question_error(
          fmt::format("`optimizer_implementation` {}: the step has no update of some parameters",
                      to_string(*wishes.implementation)),
          "`optimizer` says which optimizer updates them"));
    }
    if (wishes.master_gradients) {
      unless(false, "`master_gradients`", "gradients in the parameters' format");
    }
  }

  void unless(bool agrees, std::string_view asked, std::string_view made_for) {
    if (agrees) return;
    const bool recorded = was_recorded(document_);
    found_.push_back(question_error(
        fmt::format("{}: the step was made for {}", asked, made_for),
        recorded ? "leave it out, or record the step for it: python -m stowage record"
                 : "leave it out, or write the step for it with stowage lower"));
  }

  const StepDocument& document_;
  const LoweringSettings& settings_;
  Diagnostics found_;
};

}  // namespace

Diagnostics contradictions(const StepDocument& document, const StepQuestion& question) {
  Contradictions found(document);
  found.of_model(question.model.options);
  found.of_step(question.wishes);
  if (question.process.runtime) found.of_runtime(*question.process.runtime);
  found.of_usuals(question.given, question.wishes);
  return std::move(found).taken();
}

Diagnostics contradictions(const StepDocument& document, const Card& card) {
  Contradictions found(document);
  found.of_card(card);
  return std::move(found).taken();
}

Diagnostics contradictions(const StepDocument& document, const ModelOptions& options) {
  Contradictions found(document);
  found.of_model(options);
  return std::move(found).taken();
}

Result<void> check_batch(const StepDocument& document, std::int64_t batch, std::string_view field) {
  if (!document.fixed_batch || batch == *document.batch) return {};
  return failure(question_error(
      fmt::format("{} {}: the step was recorded at batch {} and has no sizes at another",
                  setting_name(field), grouped_digits(batch), grouped_digits(*document.batch))));
}

}  // namespace stowage
