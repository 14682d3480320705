#include "cli/output/report.hpp"

#include <fmt/format.h>

#include "estimator/base/printable.hpp"

namespace stowage {

namespace {

std::string coloured(std::string text, Tone tone) {
  switch (tone) {
    case Tone::plain:
      break;
    case Tone::good:
      return fmt::format("\x1b[32m{}\x1b[0m", text);
    case Tone::bad:
      return fmt::format("\x1b[31m{}\x1b[0m", text);
    case Tone::heading:
      return fmt::format("\x1b[1m{}\x1b[0m", text);
  }
  return text;
}

template <typename Block>
std::string chart_of(const Block& block, const Screen& screen) {
  const ChartPen pen{
      .unicode = screen.unicode, .colour = screen.colour, .width = screen.width.value_or(80)};
  if (const auto* columns = std::get_if<ColumnChart>(&block)) return chart_text(*columns, pen);
  return chart_text(std::get<RowChart>(block), pen);
}

std::string text_of(const Report& report, const Screen& screen) {
  std::string out;
  for (const auto& block : report.blocks) {
    if (const auto* paragraph = std::get_if<Paragraph>(&block)) {
      std::string text = printable_text(paragraph->text);
      out += screen.colour ? coloured(std::move(text), paragraph->tone) : text;
      out += '\n';
    } else if (const auto* table = std::get_if<Table>(&block)) {
      out += plain_text(*table, screen.width);
    } else if (screen.charts) {
      out += chart_of(block, screen);
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
      out += fmt::format("{}{}{}\n\n", heading ? "**" : "", printable_text(paragraph->text),
                         heading ? "**" : "");
    } else if (const auto* table = std::get_if<Table>(&block)) {
      out += markdown(*table) + '\n';
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

std::string render(const Report& report, Format format, const Screen& screen) {
  if (!report.raw.empty()) return screen.is_terminal ? printable_text(report.raw) : report.raw;
  switch (format) {
    case Format::table:
      return text_of(report, screen);
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
