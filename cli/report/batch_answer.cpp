#include "cli/report/batch_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/options/setting_names.hpp"
#include "cli/report/check_report.hpp"
#include "cli/report/step_report.hpp"

namespace stowage {

namespace {

Table curve_table(const BatchReport& report) {
  Table table{.columns = {{"Batch", "batch"}, {"On the device", "device_bytes", true}}};
  for (const CurvePoint& point : report.curve) {
    table.rows.push_back({{point.batch, point.device_bytes}});
  }
  return table;
}

/// The same against what the card has available.
RowChart curve_chart(const BatchReport& report, Bytes available) {
  RowChart chart{.title = fmt::format("\nagainst the {} available:",
                                      format_bytes(std::max(available, Bytes()))),
                 .limit = std::max(available, Bytes())};
  for (const CurvePoint& point : report.curve) {
    chart.bars.push_back({grouped_digits(point.batch), point.device_bytes});
  }
  return chart;
}

Json accumulation_json(const BatchReport& report) {
  if (!report.accumulation) return {};
  return Json::Object{{"global_batch", report.accumulation->global_batch.samples},
                      {"gpus", report.accumulation->gpus},
                      {"micro_batch", report.accumulation->micro_batch},
                      {"steps", report.accumulation->steps}};
}

Json::Object json_of(const BatchAnswer& found) {
  const BatchReport& report = found.report;
  Json::Array curve;
  for (const CurvePoint& point : report.curve) {
    curve.emplace_back(Json::Object{{"batch", point.batch}, {"device_bytes", point.device_bytes}});
  }
  const auto of = [](const std::optional<CheckReport>& at, Bytes CheckReport::*bytes) {
    return at ? Json((*at).*bytes) : Json();
  };
  Json::Object json = verdict_json(found.verdict(), found.card);
  const Json::Object figures{
      {"headroom_bytes", found.verdict().headroom_bytes},
      {"largest", report.largest},
      {"largest_safe", report.largest_safe},
      {"recommended", report.recommended},
      {"largest_device_bytes", of(report.at_largest, &CheckReport::device_bytes)},
      {"largest_headroom_bytes", of(report.at_largest, &CheckReport::headroom)},
      {"recommended_device_bytes", of(report.at_recommended, &CheckReport::device_bytes)},
      {"recommended_headroom_bytes", of(report.at_recommended, &CheckReport::headroom)},
      {"margin_bytes", report.margin},
      {"keeps_margin", report.keeps_margin},
      {"unlimited", report.unlimited},
      {"all_tried", report.all_tried},
      {"curve", std::move(curve)},
      {"accumulation", accumulation_json(report)},
      {"culprit", report.at_one ? Json(report.at_one->culprit) : Json()}};
  json.insert(json.end(), figures.begin(), figures.end());
  json.emplace_back(
      "settings", settings_json(found.step, report.recommended, to_string(found.settings.runtime)));
  json.emplace_back("loop", loop_json(found.step));
  add_process(found.settings, json);
  return json;
}

std::string say_largest(const BatchReport& report) {
  std::string text =
      fmt::format("the largest batch that fits is {}, {} to spare", grouped_digits(report.largest),
                  format_bytes(report.at_largest->headroom));
  const std::int64_t releases = report.at_largest->run.process().releases;
  if (releases == 1) text += " after PyTorch has given its cache back once";
  if (releases > 1)
    text += fmt::format(" after PyTorch has given its cache back {} times", releases);
  if (report.largest_safe < report.largest) {
    text += fmt::format("; all up to {} fit", grouped_digits(report.largest_safe));
  }
  return text;
}

std::string say_recommended(const BatchReport& report, const Card& card) {
  const auto [wanted, available] =
      format_apart(report.at_recommended->device_bytes, report.at_recommended->available_bytes);
  return in_options(fmt::format(
      "use `batch` {}: {} of the {} available on {}, {} to spare ({} `margin` {})",
      report.recommended, wanted, available, card.name,
      format_bytes(report.at_recommended->headroom),
      report.keeps_margin ? "at least" : "no batch leaves", format_bytes(report.margin)));
}

void say_batches(const BatchReport& report, const Card& card, Report& out) {
  if (report.largest == 0) {
    out.say(fmt::format("not even one sample fits {}", card.name), Tone::bad);
    if (report.at_one && report.at_one->run.failure) {
      out.say("  " + report.at_one->run.failure->message);
    }
    if (report.at_one && !report.at_one->run.would_do.empty()) {
      out.say(fmt::format("  {} would do",
                          fmt::join(pool_options(report.at_one->run.would_do), " or ")));
    }
    if (report.at_one) {
      const auto [wanted, available] = format_apart(
          report.at_one->device_bytes, std::max(report.at_one->available_bytes, Bytes()));
      out.say(fmt::format("  {} wanted, {} available\n  {}", wanted, available,
                          report.at_one->culprit));
    }
    return;
  }
  if (report.unlimited) {
    out.say(fmt::format("no batch that was tried is too large; the search ends at {}",
                        grouped_digits(largest_searched_batch)));
  }
  out.say(say_largest(report));
  if (!report.all_tried) {
    out.say("  (there are too many to try them all)");
  }
  if (report.accumulation) {
    const Accumulation& accumulation = *report.accumulation;
    const bool is_one = accumulation.steps == 1;
    out.say(fmt::format(
        "a global batch of {}: {} {} of {}{}{}", grouped_digits(accumulation.global_batch.samples),
        grouped_digits(accumulation.steps), is_one ? "step" : "steps",
        grouped_digits(accumulation.micro_batch),
        accumulation.gpus > 1 ? fmt::format(" on each of {} GPUs", accumulation.gpus) : "",
        is_one ? "" : ", gradients accumulated"));
  }
  if (report.at_recommended) out.say(say_recommended(report, card), Tone::good);
}

void say_found(const FoundValues& found, const SearchedQuantity& what, const Card& card,
               Report& out) {
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
                        in_options(found.largest.refused.front().message)));
  } else if (found.largest.reached_most) {
    out.say("  larger ones were not tried");
  }
  if (!found.at_recommended) {
    out.say("  none leaves the margin", Tone::plain);
    return;
  }
  const auto [wanted, available] =
      format_apart(found.at_recommended->device_bytes, found.at_recommended->available);
  out.say(in_options(fmt::format("use `{}` {}: {} of the {} available on {}, {} to spare",
                                 what.setting, found.recommended.value, wanted, available,
                                 card.name, format_bytes(found.at_recommended->headroom))),
          Tone::good);
}

Table largest_table(const FoundValues& found) {
  Table table{.columns = {{"Largest", "largest"},
                          {"On the device", "device_bytes", true},
                          {"Recommended", "recommended", true},
                          {"On the device", "recommended_device_bytes", true}}};
  if (!found.at_largest) return table;
  const bool recommends = found.at_recommended.has_value();
  table.rows.push_back({{found.largest.value, found.at_largest->device_bytes,
                         recommends ? Cell(found.recommended.value) : Cell(),
                         recommends ? Cell(found.at_recommended->device_bytes) : Cell()}});
  return table;
}

Json::Object json_of(const LargestValueAnswer& answer) {
  const FoundValues& found = answer.found;
  const auto of = [](const std::optional<ValueRun>& run, Bytes ValueRun::*bytes) {
    return run ? Json((*run).*bytes) : Json();
  };
  Json::Object json{{"of", option_word(searched_quantity(answer.of).setting)}};
  const Json::Object top = verdict_json(answer.verdict(), answer.card);
  const Json::Object figures{
      {"headroom_bytes", answer.verdict().headroom_bytes},
      {"largest", found.largest.value},
      {"largest_device_bytes", of(found.at_largest, &ValueRun::device_bytes)},
      {"largest_headroom_bytes", of(found.at_largest, &ValueRun::headroom)},
      {"recommended", found.recommended.value},
      {"recommended_device_bytes", of(found.at_recommended, &ValueRun::device_bytes)},
      {"recommended_headroom_bytes", of(found.at_recommended, &ValueRun::headroom)},
      {"limited_by_model", !found.largest.refused.empty()},
      {"unlimited", found.largest.reached_most}};
  json.insert(json.end(), top.begin(), top.end());
  json.insert(json.end(), figures.begin(), figures.end());
  json.emplace_back("settings",
                    settings_json(answer.step, answer.batch, to_string(answer.settings.runtime)));
  add_process(answer.settings, json);
  return json;
}

}  // namespace

RenderedAnswer rendered(const BatchAnswer& found) {
  const BatchReport& report = found.report;
  RenderedAnswer answer{.exit_code = report.largest > 0 ? ExitCode::yes : ExitCode::clean_no};
  Report& out = answer.report;
  out.notes = found.notes;
  out.json = json_of(found);
  out.listing = curve_table(report);
  out.say(fmt::format("{}, {} runtime, {}", describe_step(found.step, std::nullopt),
                      to_string(found.settings.runtime), found.card.name),
          Tone::heading);
  if (found.step.loop) out.say("the loop: " + describe_loop(*found.step.loop));
  if (!report.curve.empty()) {
    out.show(out.listing);
    out.show(curve_chart(report, found.verdict().available_bytes));
  }
  say_batches(report, found.card, out);
  return answer;
}

RenderedAnswer rendered(const LargestValueAnswer& found) {
  const bool any_fits = found.found.largest.value > 0;
  RenderedAnswer answer{.exit_code = any_fits ? ExitCode::yes : ExitCode::clean_no};
  Report& out = answer.report;
  out.notes = found.notes;
  out.json = json_of(found);
  out.listing = largest_table(found.found);
  say_found(found.found, searched_quantity(found.of), found.card, out);
  return answer;
}

}  // namespace stowage
