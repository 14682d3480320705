#include "cli/report/page_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "answers/question/question_error.hpp"
#include "answers/question/shell_word.hpp"
#include "cli/output/output_file.hpp"

namespace stowage {

Result<void> check_page_file(const std::string& path, const std::string& output) {
  if (path.empty()) return {};
  if (!names_page(path)) {
    const std::string page = std::filesystem::path(path).replace_extension(".html").string();
    return failure(question_error(
        fmt::format("`report` {}: what is written is HTML, and the name says something else", path),
        fmt::format("`report` {}", shell_word(page))));
  }
  if (path == output) return failure(question_error("`output` and `report` name the same file"));
  return OutputFile::open(path).map([](const OutputFile&) {});
}

Result<void> write_page(const std::string& path, PageContent content, RenderedAnswer& answer) {
  const std::string text = page_text(std::move(content));
  auto file = OutputFile::open(path);
  if (!file) return tl::unexpected(std::move(file.error()));
  if (auto written = file->commit(text); !written) return written;
  answer.report.json.emplace_back("report", path);
  answer.report.say(fmt::format("the page is written to {}", path), Tone::good);
  return {};
}

}  // namespace stowage
