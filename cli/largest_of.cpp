#include "cli/largest_of.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include "cli/arguments.hpp"
#include "cli/progress.hpp"
#include "cli/replicas.hpp"
#include "cli/requested_step.hpp"
#include "cli/serving.hpp"
#include "cli/serving_report.hpp"
#include "cli/serving_request.hpp"
#include "cli/step_report.hpp"
#include "cli/workspace_report.hpp"
#include "estimator/check/batch_search.hpp"
#include "estimator/check/largest_value.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_searched = std::int64_t{1} << 24;

/// What a value's run comes to; of serving, the pass that takes more.
struct ValueRun {
  bool fits = false, calm = false;  ///< calm: the cache is never given back, and steps settle
  Bytes device_bytes, headroom, available;
  Bytes usual_margin;
};

ValueRun run_of(const CheckReport& report, const Card& card, const CheckSettings& settings) {
  return {.fits = report.fits,
          .calm = report.fits && report.run.process().releases == 0 && report.run.settles(),
          .device_bytes = report.device_bytes,
          .headroom = report.headroom,
          .available = report.available_bytes,
          .usual_margin = usual_margin(*report.footprint.graph, card, settings)};
}

ValueRun larger_of(const ValueRun& a, const ValueRun& b) {
  ValueRun larger = a.device_bytes > b.device_bytes ? a : b;
  larger.fits = a.fits && b.fits;
  larger.calm = a.calm && b.calm;
  larger.usual_margin = std::max(a.usual_margin, b.usual_margin);
  return larger;
}

using RunAt = std::function<Result<ValueRun>(std::int64_t)>;

/// The runs of a search, each value once.
class ValueTrials {
 public:
  ValueTrials(RunAt run, std::optional<Bytes> margin) : run_(std::move(run)), margin_(margin) {}

  Result<ValueRun> at(std::int64_t value) {
    const auto known = runs_.find(value);
    if (known != runs_.end()) return known->second;
    Result<ValueRun> run = run_(value);
    if (run) runs_.emplace(value, *run);
    return run;
  }
  Result<bool> fits(std::int64_t value) {
    return at(value).map([](const ValueRun& run) { return run.fits; });
  }
  Result<bool> keeps_margin(std::int64_t value) {
    return at(value).map([&](const ValueRun& run) {
      return run.calm && run.headroom >= margin_.value_or(run.usual_margin);
    });
  }

 private:
  RunAt run_;
  std::optional<Bytes> margin_;
  std::map<std::int64_t, ValueRun> runs_;
};

struct Found {
  LargestValue largest, recommended;
  std::optional<ValueRun> at_one, at_largest, at_recommended;
};

Result<Found> search(ValueTrials& trials) {
  Found found;
  auto largest =
      find_largest_value(most_searched, [&](std::int64_t value) { return trials.fits(value); });
  if (!largest) return tl::unexpected(std::move(largest.error()));
  found.largest = *std::move(largest);
  const auto keep = [&](std::int64_t value, std::optional<ValueRun>& into) {
    if (auto run = trials.at(value)) into = *run;
  };
  if (found.largest.value == 0) {
    keep(1, found.at_one);
    return found;
  }
  keep(found.largest.value, found.at_largest);
  auto recommended = find_largest_value(
      found.largest.value, [&](std::int64_t value) { return trials.keeps_margin(value); });
  if (!recommended) return tl::unexpected(std::move(recommended.error()));
  found.recommended = *std::move(recommended);
  if (found.recommended.value > 0) keep(found.recommended.value, found.at_recommended);
  return found;
}

/// What is looked for, in words.
struct Sought {
  std::string_view option;  ///< "context-length"
  std::string_view noun;    ///< "context length"
};

Sought sought(LargestOf of) {
  switch (of) {
    case LargestOf::users:
      return {"users", "number of users"};
    case LargestOf::context_length:
      return {"context-length", "context length"};
    case LargestOf::seq:
      return {"seq", "sequence length"};
  }
  return {};
}

void say_found(const Found& found, const Sought& what, const Card& card, Report& out) {
  if (found.largest.value == 0) {
    out.say(fmt::format("not even a {} of 1 fits {}", what.noun, card.name), Tone::bad);
    if (found.at_one) {
      const auto [wanted, available] =
          format_apart(found.at_one->device_bytes, std::max(found.at_one->available, Bytes()));
      out.say(fmt::format("  {} wanted, {} available", wanted, available));
    }
    return;
  }
  const std::int64_t value = found.largest.value;
  out.say(fmt::format("the largest {} that fits is {}, {} to spare", what.noun,
                      grouped_digits(value), format_bytes(found.at_largest->headroom)));
  if (!found.largest.refused.empty()) {
    out.say(fmt::format("  the model takes no {}: {}", grouped_digits(value + 1),
                        found.largest.refused.front().message));
  } else if (found.largest.reached_most) {
    out.say("  larger ones were not tried");
  }
  if (!found.at_recommended) {
    out.say("  none leaves the margin", Tone::plain);
    return;
  }
  const auto [wanted, available] =
      format_apart(found.at_recommended->device_bytes, found.at_recommended->available);
  out.say(fmt::format("use --{} {}: {} of the {} available on {}, {} to spare", what.option,
                      found.recommended.value, wanted, available, card.name,
                      format_bytes(found.at_recommended->headroom)),
          Tone::good);
}

Answer answer_of(const Found& found, const Sought& what, const Card& card) {
  Answer answer;
  answer.exit_code = found.largest.value > 0 ? ExitCode::yes : ExitCode::clean_no;
  Report& out = answer.report;
  const auto of = [](const std::optional<ValueRun>& run, Bytes ValueRun::*bytes) {
    return run ? Json((*run).*bytes) : Json();
  };
  out.json = {{"of", what.option},
              {"device", Json::Object{{"name", card.name}, {"total_bytes", card.cuda_total}}},
              {"largest", found.largest.value},
              {"largest_device_bytes", of(found.at_largest, &ValueRun::device_bytes)},
              {"largest_headroom_bytes", of(found.at_largest, &ValueRun::headroom)},
              {"recommended", found.recommended.value},
              {"recommended_device_bytes", of(found.at_recommended, &ValueRun::device_bytes)},
              {"recommended_headroom_bytes", of(found.at_recommended, &ValueRun::headroom)},
              {"limited_by_model", !found.largest.refused.empty()},
              {"unlimited", found.largest.reached_most}};
  Table table{.columns = {{"Largest", "largest"},
                          {"On the device", "device_bytes"},
                          {"Recommended", "recommended"},
                          {"On the device", "recommended_device_bytes"}}};
  if (found.at_largest) {
    table.rows.push_back(
        {{found.largest.value, found.at_largest->device_bytes,
          found.at_recommended ? Cell(found.recommended.value) : Cell(),
          found.at_recommended ? Cell(found.at_recommended->device_bytes) : Cell()}});
  }
  out.listing = std::move(table);
  return answer;
}

Result<ValueRun> run_with_seq(const BatchRequest& request, std::int64_t seq,
                              const RequestedCard& card, WorkspaceSource& workspaces) {
  StepRequest with_seq = request.step;
  with_seq.model.options.seq = seq;
  const auto requested = requested_step(with_seq, card, step_alone);
  if (!requested) return tl::unexpected(requested.error());
  if (!requested->model || requested->model->graph.default_seq == 0) {
    return failure(fmt::format("'{}' has no symbol 'seq', so that its sequences have no length",
                               request.step.model.source));
  }
  const auto graph = sizing_step(requested->document);
  if (!graph) return tl::unexpected(graph.error());
  const CheckSettings& settings = requested->settings;
  const auto step =
      size_step(*graph, replica_batch(request.batch.value_or(1), settings), workspaces);
  if (!step) return tl::unexpected(step.error());
  return run_of(check(*step, card.card, settings), card.card, settings);
}

Result<ValueRun> run_served(const ServedModel& served, const ServingSettings& settings,
                            WorkspaceSource& workspaces) {
  const auto report = check_serving(served, settings, workspaces);
  if (!report) return tl::unexpected(report.error());
  const auto run = [&](const CheckedPass& pass) {
    return run_of(pass.report, served.card.card, served.settings);
  };
  return larger_of(run(report->prefill), run(report->decode));
}

Result<RunAt> runs_of(const BatchRequest& request, const RequestedCard& card,
                      WorkspaceSource& workspaces) {
  if (*request.of == LargestOf::seq) {
    return RunAt([&](std::int64_t seq) { return run_with_seq(request, seq, card, workspaces); });
  }
  auto served = served_model(request.step, request.serving->cache, card);
  if (!served) return tl::unexpected(std::move(served.error()));
  const ServingSettings settings = with_usual_chunk(*request.serving, card.card);
  const bool of_users = *request.of == LargestOf::users;
  return RunAt([served = *std::move(served), settings, of_users,
                &workspaces](std::int64_t value) -> Result<ValueRun> {
    ServingSettings with_value = settings;
    (of_users ? with_value.users : with_value.context_length) = value;
    return run_served(served, with_value, workspaces);
  });
}

}  // namespace

Result<Answer> largest_of(const BatchRequest& request) {
  const Sought what = sought(*request.of);
  const Progress progress(fmt::format("searching for the largest {}", what.noun));
  const auto card = requested_card(request.card);
  if (!card) return tl::unexpected(card.error());
  CudnnWorkspaceSource cudnn(card->card, answer_folder(request.step.keep_answers));
  const Runtime runtime = request.step.process.runtime.value_or(request.step.process.usual_runtime);
  RuntimeWorkspaceSource workspaces(cudnn, runtime);
  auto runs = runs_of(request, *card, workspaces);
  if (!runs) return tl::unexpected(std::move(runs.error()));
  ValueTrials trials(*std::move(runs), request.margin);
  const auto found = search(trials);
  if (!found) return tl::unexpected(found.error());
  Answer answer = answer_of(*found, what, card->card);
  answer.report.notes = card->notes;
  std::ranges::move(cudnn_notes(cudnn), std::back_inserter(answer.report.notes));
  say_found(*found, what, card->card, answer.report);
  return answer;
}

}  // namespace stowage
