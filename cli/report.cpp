#include "cli/report.hpp"

#include <fmt/format.h>

namespace stowage {

namespace {

std::string coloured(const Paragraph& paragraph) {
  switch (paragraph.tone) {
    case Tone::plain:
      return paragraph.text;
    case Tone::good:
      return fmt::format("\x1b[32m{}\x1b[0m", paragraph.text);
    case Tone::bad:
      return fmt::format("\x1b[31m{}\x1b[0m", paragraph.text);
    case Tone::heading:
      return fmt::format("\x1b[1m{}\x1b[0m", paragraph.text);
  }
  return paragraph.text;
}

std::string text_of(const Report& report, bool colour) {
  std::string out;
  for (const auto& block : report.blocks) {
    if (const auto* paragraph = std::get_if<Paragraph>(&block)) {
      out += colour ? coloured(*paragraph) : paragraph->text;
      out += '\n';
    } else {
      out += plain_text(std::get<Table>(block));
    }
  }
  return out;
}

std::string markdown_of(const Report& report) {
  std::string out;
  for (const auto& block : report.blocks) {
    if (const auto* paragraph = std::get_if<Paragraph>(&block)) {
      if (paragraph->text.empty()) continue;
      const bool heading = paragraph->tone == Tone::heading;
      out += fmt::format("{}{}{}\n\n", heading ? "**" : "", paragraph->text, heading ? "**" : "");
    } else {
      out += markdown(std::get<Table>(block)) + '\n';
    }
  }
  return out;
}

std::string json_of(const Report& report) {
  Json::Object object{{"schema_version", schema_version}};
  object.insert(object.end(), report.json.begin(), report.json.end());
  return Json(std::move(object)).text();
}

}  // namespace

Format format_of(std::string_view name) {
  if (name == "json") return Format::json;
  if (name == "csv") return Format::csv;
  if (name == "markdown") return Format::markdown;
  return Format::table;
}

std::string render(const Report& report, Format format, bool colour) {
  if (!report.raw.empty()) return report.raw;
  switch (format) {
    case Format::table:
      return text_of(report, colour);
    case Format::json:
      return json_of(report);
    case Format::csv:
      return csv(report.listing);
    case Format::markdown:
      return markdown_of(report);
  }
  return {};
}

}  // namespace stowage
