#include "cli/report/export_answer.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "cli/options/setting_names.hpp"
#include "cli/report/check_report.hpp"
#include "cli/report/step_report.hpp"

namespace stowage {

namespace {

Json::Array listed(const std::vector<std::string>& lines) {
  Json::Array list;
  for (const std::string& line : lines) list.emplace_back(in_options(line));
  return list;
}

Json::Object export_json(const ExportAnswer& found) {
  const ExportFormRow& row = row_of(found.form);
  Json::Object json{{"form", row.name},
                    {"text", row.is_binary ? Json() : Json(exported_text(found))}};
  if (const auto verdict = found.verdict()) {
    json.emplace_back("fits", verdict->fits);
    json.emplace_back("device_bytes", verdict->device_bytes);
    json.emplace_back("available_bytes", verdict->available_bytes);
    json.emplace_back("headroom_bytes", verdict->headroom_bytes);
  }
  if (const auto* check = std::get_if<CheckAnswer>(&found.sizes)) {
    json.emplace_back("device", check->card.name);
    json.emplace_back("settings",
                      settings_json(check->step, check->batch, to_string(check->settings.runtime)));
  }
  if (const auto* serving = std::get_if<ServingAnswer>(&found.sizes)) {
    json.emplace_back("device", serving->card.name);
    json.emplace_back("device_bytes_of_all", serving->larger().report.device_bytes);
  }
  json.emplace_back("not_in_the_file", listed(found.unsaid));
  json.emplace_back("beside_the_file", listed(found.remarks));
  json.emplace_back("not_counted", listed(found.uncounted));
  return json;
}

/// "fits: 3.8 GiB of 11.8 GiB, 7.9 GiB to spare": of what stays on the GPU.
std::string placed_text(const Verdict& verdict, std::string_view what) {
  const auto [needed, available] = format_apart(verdict.device_bytes, verdict.available_bytes);
  return verdict.fits
             ? fmt::format("fits: {}{} of {} available, {} to spare", needed, what, available,
                           format_bytes(verdict.headroom_bytes))
             : fmt::format("does not fit: {}{} wanted, {} available, {} too much", needed, what,
                           available, format_bytes(Bytes() - verdict.headroom_bytes));
}

/// What is said beside the file: to the report, or as notes.
class Beside {
 public:
  Beside(Report& report, bool as_notes) : report_(report), as_notes_(as_notes) {}

  void list(const std::string& title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    std::string text = title;
    for (const std::string& line : lines) text += "\n  " + in_options(line);
    say(std::move(text));
  }

  void placed(const Verdict& verdict, std::string_view what) {
    std::string text = placed_text(verdict, what);
    if (as_notes_) {
      report_.notes.push_back({.severity = verdict.fits ? Severity::note : Severity::warning,
                               .message = std::move(text)});
    } else {
      report_.say(std::move(text), verdict.fits ? Tone::good : Tone::bad);
    }
  }

  void verdict(const CheckReport& sizes, const Card& card, Runtime runtime) {
    Report said;
    say_verdict(sizes, card, kernels_in_words(runtime), said);
    for (const auto& block : said.blocks) {
      const auto& paragraph = std::get<Paragraph>(block);
      if (as_notes_) {
        report_.notes.push_back({.severity = sizes.fits ? Severity::note : Severity::warning,
                                 .message = paragraph.text});
        return;  // the first says it all
      }
      report_.say(paragraph.text, paragraph.tone);
    }
  }

 private:
  void say(std::string text) {
    if (as_notes_) {
      report_.notes.push_back({.severity = Severity::note, .message = std::move(text)});
    } else {
      report_.say(std::move(text));
    }
  }

  Report& report_;
  bool as_notes_;
};

}  // namespace

std::string exported_text(const ExportAnswer& found) {
  ExportAnswer in_own_words = found;
  for (std::string& line : in_own_words.head) line = in_options(line);
  return whole_text(in_own_words);
}

RenderedAnswer rendered(const ExportAnswer& found, bool has_file) {
  RenderedAnswer shown{.exit_code = found.fits() ? ExitCode::yes : ExitCode::clean_no};
  Report& out = shown.report;
  out.notes = found.notes;
  out.json = export_json(found);
  Beside beside(out, !has_file);
  if (const auto* check = std::get_if<CheckAnswer>(&found.sizes)) {
    if (has_file) out.say(describe_step(check->step, check->batch), Tone::heading);
    beside.verdict(check->report, check->card, check->settings.runtime);
  }
  if (found.placed) beside.placed(*found.placed, found.of_plan ? " of tensors" : " on the GPU");
  beside.list("counted, and not said by the file:", found.unsaid);
  beside.list("beside the file:", found.remarks);
  beside.list("not counted:", found.uncounted);
  return shown;
}

}  // namespace stowage
