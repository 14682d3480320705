#include "answers/sizing/tried_changes.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "answers/subject/replicas.hpp"
#include "estimator/check/check.hpp"

namespace stowage {

namespace {

constexpr int enough_that_fit = 3;

struct Change {
  std::map<std::string, std::string> settings;
  std::string effect;
  bool other_training = false;
  std::function<void(StepQuestion&)> apply;
};

/// A change of one text of the fine-tuning.
Change fine_tuned(const char* setting, const char* value, const char* effect,
                  std::optional<std::string> FineTuningTexts::*text) {
  return {.settings = {{setting, value}}, .effect = effect, .apply = [=](StepQuestion& question) {
            question.model.options.fine_tuning.*text = value;
          }};
}

Change in_precision(Precision precision, const char* effect) {
  return {.settings = {{"precision", std::string(to_string(precision))}},
          .effect = effect,
          .apply = [=](StepQuestion& question) { question.model.options.precision = precision; }};
}

/// By which the same numbers are computed.
std::vector<Change> same_numbers(const ModelGraph& model) {
  const FineTuning& tuned = model.fine_tuning;
  std::vector<Change> changes;
  if (!tuned.chunked_loss) {
    changes.push_back(fine_tuned("chunked_loss", "8", "output layer and loss in 8 parts",
                                 &FineTuningTexts::chunked_loss));
  }
  if (!tuned.checkpoint) {
    changes.push_back(fine_tuned("checkpoint", "all", "blocks run again in backward",
                                 &FineTuningTexts::checkpoint));
  }
  if (!tuned.offload) {
    changes.push_back(fine_tuned("offload_activations", "all", "saved tensors wait on the host",
                                 &FineTuningTexts::offload_activations));
  }
  if (!tuned.optimizer_in_backward) {
    Change change = fine_tuned("optimizer_in_backward", "true", "no gradient waits for the others",
                               &FineTuningTexts::optimizer_in_backward);
    change.settings = {{"optimizer_in_backward", ""}};
    changes.push_back(std::move(change));
  }
  return changes;
}

/// The 8-bit optimizer in the place of one with the same rule; "": there is none.
std::string in_8_bits_of(std::string_view optimizer) {
  if (optimizer == "adam") return "adam8bit";
  if (optimizer == "adamw" || optimizer == "paged_adamw_32bit") return "adamw8bit";
  return {};
}

/// By which the same is computed in other number formats.
std::vector<Change> other_formats(const StepSetup& setup) {
  const ModelGraph& model = setup.step.model->graph;
  const LoweringSettings& lowering = setup.step.document.graph->settings;
  const bool has_bfloat16 = setup.card.card.compute_capability >= 8;
  const bool trains = lowering.mode == Mode::train;
  std::vector<Change> changes;
  if (model.precision == Precision::fp32 && trains) {
    changes.push_back(has_bfloat16 ? in_precision(Precision::amp_bf16, "autocast to bf16")
                                   : in_precision(Precision::amp_fp16, "autocast to fp16"));
  }
  const bool is_wide = model.precision != Precision::bf16 && model.precision != Precision::fp16;
  if (is_wide && (has_bfloat16 || !trains)) {
    changes.push_back(
        in_precision(has_bfloat16 ? Precision::bf16 : Precision::fp16, "everything in 16 bits"));
  }
  if (const std::string name = in_8_bits_of(lowering.optimizer.name); trains && !name.empty()) {
    changes.push_back(
        {.settings = {{"optimizer", name}},
         .effect = "the optimizer's state in 8 bits",
         .apply = [name](StepQuestion& question) { question.wishes.optimizer = name; }});
  }
  if (model.fine_tuning.lora && !model.fine_tuning.base) {
    changes.push_back(
        fine_tuned("base", "nf4", "frozen weights in 4 bits", &FineTuningTexts::base));
  }
  return changes;
}

/// By which another thing is trained, or run.
std::vector<Change> other_trainings(const StepQuestion& question, const StepSetup& setup) {
  const ModelGraph& model = setup.step.model->graph;
  const std::int64_t tokens = question.model.options.seq.value_or(model.default_seq);
  std::vector<Change> changes;
  constexpr std::int64_t least_tokens = 64;
  if (tokens >= 2 * least_tokens) {
    changes.push_back(
        {.settings = {{"seq", std::to_string(tokens / 2)}},
         .effect = "half the tokens",
         .apply = [=](StepQuestion& changed) { changed.model.options.seq = tokens / 2; }});
  }
  const bool trains = setup.step.document.graph->settings.mode == Mode::train;
  if (tokens > 0 && trains && !model.fine_tuning.lora) {
    const char* const adapters = "r=16,alpha=32,targets=all-linear";
    changes.push_back(fine_tuned("lora", adapters, "adapters are trained, the weights are frozen",
                                 &FineTuningTexts::lora));
    if (!model.fine_tuning.base) {
      Change change = changes.back();
      change.settings.emplace("base", "nf4");
      change.effect = "adapters are trained, the weights are frozen in 4 bits";
      change.apply = [=](StepQuestion& changed) {
        changed.model.options.fine_tuning.lora = adapters;
        changed.model.options.fine_tuning.base = "nf4";
      };
      changes.push_back(std::move(change));
    }
  }
  for (Change& change : changes) change.other_training = true;
  return changes;
}

bool share_a_setting(const Change& one, const Change& other) {
  return std::ranges::any_of(
      one.settings, [&](const auto& setting) { return other.settings.contains(setting.first); });
}

/// Several changes as one; of two of one setting the later one counts.
class Together {
 public:
  void add(const Change& change) {
    std::erase_if(parts_, [&](const Change& part) { return share_a_setting(part, change); });
    parts_.push_back(change);
  }
  [[nodiscard]] std::size_t count() const { return parts_.size(); }
  [[nodiscard]] bool is_several() const { return parts_.size() > 1; }
  [[nodiscard]] Together without(std::size_t index) const {
    Together fewer = *this;
    fewer.parts_.erase(fewer.parts_.begin() + static_cast<std::ptrdiff_t>(index));
    return fewer;
  }
  [[nodiscard]] Change change() const {
    Change all{.apply = [parts = parts_](StepQuestion& question) {
      for (const Change& part : parts) part.apply(question);
    }};
    for (const Change& part : parts_) {
      all.settings.insert(part.settings.begin(), part.settings.end());
      all.effect += (all.effect.empty() ? "" : ", ") + part.effect;
      all.other_training = all.other_training || part.other_training;
    }
    return all;
  }

 private:
  std::vector<Change> parts_;
};

/// Sizes changed steps on the question's card.
class Trial {
 public:
  Trial(const StepQuestion& question, const StepSetup& setup) : question_(question), setup_(setup) {
    result_.batch = replica_count(setup.step.settings);
    if (const auto whole = report_of(setup)) whole_ = whole->device_bytes;
  }

  /// The change with its size, where it makes the step smaller.
  std::optional<TriedChange> size(const Change& change) {
    if (result_.tried == most_tries) return std::nullopt;
    ++result_.tried;
    StepQuestion changed = question_;
    change.apply(changed);
    const auto source = read_step_source(changed);
    if (!source) return std::nullopt;
    const auto setup = set_up_step(*source, changed, setup_.card, {.costs = false});
    if (!setup) return std::nullopt;
    const auto report = report_of(*setup);
    if (!report || !whole_ || report->device_bytes >= *whole_) return std::nullopt;
    return TriedChange{.settings = change.settings,
                       .effect = change.effect,
                       .other_training = change.other_training,
                       .device_bytes = report->device_bytes,
                       .fits = report->fits};
  }

  void note(TriedChange change) { result_.changes.push_back(std::move(change)); }

  [[nodiscard]] int fitting() const {
    return static_cast<int>(std::ranges::count(result_.changes, true, &TriedChange::fits));
  }
  [[nodiscard]] TriedChanges result() && { return std::move(result_); }

 private:
  std::optional<CheckReport> report_of(const StepSetup& setup) const {
    const auto step = setup.at_batch(replica_count(setup.step.settings));
    if (!step) return std::nullopt;
    return check(*step, setup.card.card, setup.step.settings);
  }

  const StepQuestion& question_;
  const StepSetup& setup_;
  std::optional<Bytes> whole_;
  TriedChanges result_;
};

/// One more change at a time, until they fit, without those that make it no smaller; then each that
/// is not needed is left out, those first that came last. Nullopt: no two of them are of use.
std::optional<TriedChange> several_together(const std::vector<Change>& changes, Trial& trial) {
  Together parts;
  std::optional<TriedChange> best;
  for (const Change& change : changes) {
    if (best && best->fits) break;
    Together more = parts;
    more.add(change);
    if (!more.is_several()) {
      parts = std::move(more);
      continue;
    }
    auto sized = trial.size(more.change());
    if (!sized || (best && sized->device_bytes >= best->device_bytes)) continue;
    parts = std::move(more);
    best = std::move(sized);
  }
  if (!best || !best->fits) return best;
  // The last one is needed, or the search would have ended before it.
  for (std::size_t i = parts.count() - 1; i-- > 0 && parts.count() > 2;) {
    Together fewer = parts.without(i);
    auto sized = trial.size(fewer.change());
    if (!sized || !sized->fits) continue;
    parts = std::move(fewer);
    best = std::move(sized);
  }
  return best;
}

bool can_be_read_again(const StepQuestion& question) {
  std::error_code code;
  const std::string& source = question.model.source;
  return source != "-" && (!std::filesystem::exists(source, code) ||
                           std::filesystem::is_regular_file(source, code) ||
                           std::filesystem::is_directory(source, code));
}

}  // namespace

TriedChanges try_changes(const StepQuestion& question, const StepSetup& setup) {
  if (!setup.step.model || !can_be_read_again(question)) return {};
  const bool trains = setup.step.document.graph->settings.mode == Mode::train;
  std::vector<std::vector<Change>> groups;
  if (trains) groups.push_back(same_numbers(setup.step.model->graph));
  groups.push_back(other_formats(setup));
  groups.push_back(other_trainings(question, setup));
  Trial trial(question, setup);
  std::vector<Change> helpful, useless_alone;
  for (const std::vector<Change>& group : groups) {
    for (const Change& change : group) {
      if (trial.fitting() == enough_that_fit) break;
      auto sized = trial.size(change);
      (sized ? helpful : useless_alone).push_back(change);
      if (sized) trial.note(*std::move(sized));
    }
  }
  if (trial.fitting() > 0) return std::move(trial).result();
  helpful.insert(helpful.end(), useless_alone.begin(), useless_alone.end());
  if (auto several = several_together(helpful, trial)) trial.note(*std::move(several));
  return std::move(trial).result();
}

}  // namespace stowage
