// Report: what a command answers, once as JSON and once as paragraphs and tables, from which
// `--format table|json|csv|markdown` is rendered.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/output/bar_chart.hpp"
#include "cli/output/json_value.hpp"
#include "cli/output/table.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

enum class Tone { plain, good, bad, heading };

struct Paragraph {
  std::string text;  ///< lines; the last without '\n'
  Tone tone = Tone::plain;
};

struct Report {
  Json::Object json;  ///< "schema_version" is put in front
  std::vector<std::variant<Paragraph, Table, ColumnChart, RowChart>> blocks;
  Table listing;      ///< what CSV holds: every row, nothing folded
  std::string raw;    ///< not empty: printed as it is, whatever the format
  Diagnostics notes;  ///< warnings and assumptions, for stderr

  void say(std::string text, Tone tone = Tone::plain) {
    blocks.emplace_back(Paragraph{std::move(text), tone});
  }
  void show(Table table) { blocks.emplace_back(std::move(table)); }
  /// On a terminal alone.
  void show(ColumnChart chart) { blocks.emplace_back(std::move(chart)); }
  void show(RowChart chart) { blocks.emplace_back(std::move(chart)); }
};

inline constexpr int schema_version = 1;

enum class Format { table, json, csv, markdown };
[[nodiscard]] Format format_of(std::string_view name);  ///< precondition: one of --format's choices

/// Where a report is printed.
struct Screen {
  bool is_terminal = false;
  bool charts = false;   ///< it is a terminal that shows them
  bool unicode = false;  ///< its characters are UTF-8
  bool colour = false;
  std::optional<std::size_t> width = std::nullopt;  ///< of lines; nullopt: as long as they are
};
/// Whatever names the report holds, the text moves no cursor (printable.hpp); `raw` is made so on
/// a terminal, and is exact elsewhere.
[[nodiscard]] std::string render(const Report& report, Format format, const Screen& screen);

}  // namespace stowage
