#include "cli/sizing/largest_of.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/output/progress.hpp"
#include "cli/report/workspace_report.hpp"
#include "cli/requested/requested_settings.hpp"
#include "cli/sizing/sized_values.hpp"
#include "cli/sizing/value_search.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"

namespace stowage {

namespace {

void say_found(const FoundValues& found, const Sought& what, const Card& card, Report& out) {
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

Answer answer_of(const FoundValues& found, const Sought& what, const Card& card) {
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

}  // namespace

Result<Answer> largest_of(const BatchRequest& request) {
  const Sought what = sought(*request.of);
  const Progress progress(fmt::format("searching for the largest {}", what.noun));
  const auto card = requested_card(request.card);
  if (!card) return tl::unexpected(card.error());
  CudnnWorkspaceSource cudnn(card->card, answer_folder(request.step.keep_answers));
  const Runtime runtime = request.step.process.runtime.value_or(request.step.process.usual_runtime);
  RuntimeWorkspaceSource workspaces(cudnn, runtime);
  const auto settings = requested_settings(request.step, runtime, *card);
  if (!settings) return tl::unexpected(settings.error());
  const auto sizes = sizes_of_values(request, *card, workspaces);
  if (!sizes) return tl::unexpected(sizes.error());
  const RunAt run = [&](std::int64_t value) {
    return (*sizes)(value).map([&](const std::shared_ptr<const SizedSteps>& sized) {
      return run_of_steps(*sized, card->card, *settings);
    });
  };
  NeedsByValue needs;
  const auto found = search_values(run, request.margin, needs);
  if (!found) return tl::unexpected(found.error());
  Answer answer = answer_of(*found, what, card->card);
  answer.report.notes = card->notes;
  std::ranges::move(cudnn_notes(cudnn), std::back_inserter(answer.report.notes));
  say_found(*found, what, card->card, answer.report);
  return answer;
}

}  // namespace stowage
