#include "cli/report/page.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "answers/question/version.hpp"
#include "cli/options/setting_names.hpp"
#include "cli/output/diagnostics_json.hpp"
#include "cli/report/page_files.hpp"
#include "estimator/base/hash.hpp"
#include "estimator/base/name_match.hpp"
#include "estimator/base/printable.hpp"

namespace stowage {

namespace {

std::string replaced(std::string_view text, std::string_view (*replacement)(char)) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const std::string_view other = replacement(c);
    if (other.empty()) {
      result += c;
    } else {
      result += other;
    }
  }
  return result;
}

/// As the content of an element, or the value of an attribute.
std::string in_markup(std::string_view text) {
  return replaced(text, [](char c) -> std::string_view {
    switch (c) {
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '&':
        return "&amp;";
      case '"':
        return "&quot;";
      default:
        return {};
    }
  });
}

/// JSON in a script element: such characters stand in strings alone, where they may be escapes.
std::string in_script(std::string_view json) {
  return replaced(json, [](char c) -> std::string_view {
    switch (c) {
      case '<':
        return "\\u003c";
      case '>':
        return "\\u003e";
      case '&':
        return "\\u0026";
      default:
        return {};
    }
  });
}

bool is_named(const PageFile& file, std::string_view ending) {
  return std::string_view(file.name).ends_with(ending);
}

std::string joined_files(std::string_view ending) {
  std::string text;
  for (const PageFile& file : page_files()) {
    if (is_named(file, ending)) text += file.text;
  }
  return text;
}

/// The template with each @NAME@ replaced; what it is replaced with is not looked at again.
std::string filled(std::string_view frame,
                   const std::vector<std::pair<std::string_view, std::string>>& parts) {
  std::string page;
  while (true) {
    const std::size_t begin = frame.find('@');
    page += frame.substr(0, begin);
    if (begin == std::string_view::npos) return page;
    const std::size_t end = frame.find('@', begin + 1);
    const std::string_view name = frame.substr(begin + 1, end - begin - 1);
    const auto part = std::ranges::find(parts, name, [](const auto& of) { return of.first; });
    if (part == parts.end()) throw std::logic_error("page.html has a part that nothing fills");
    page += part->second;
    frame.remove_prefix(end + 1);
  }
}

}  // namespace

std::string page_text(PageContent content) {
  const Report& report = content.answer.report;
  Json::Object answer = report.json;
  answer.emplace_back("notes", diagnostics_array(in_options(report.notes)));
  content.shown.emplace_back("answer", std::move(answer));
  content.shown.emplace_back("written_by", "stowage " + std::string(program_version));
  const std::string data = in_script(Json(std::move(content.shown)).line());
  Report without_raw = report;  // of `-o -`: what stdout holds in place of the text
  without_raw.raw.clear();
  const std::string text = render(without_raw, Format::table, {});
  return filled(joined_files(".html"), {{"TITLE", in_markup(printable_line(content.title))},
                                        {"NONCE", hash_text(data)},
                                        {"STYLE", joined_files(".css")},
                                        {"SCRIPT", joined_files(".js")},
                                        {"TEXT", in_markup(text)},
                                        {"DATA", data}});
}

bool names_page(std::string_view path) {
  const std::string name = lower_case(path);
  return name.ends_with(".html") || name.ends_with(".htm");
}

}  // namespace stowage
