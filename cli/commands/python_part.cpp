#include "cli/commands/python_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "answers/question/shell_word.hpp"
#include "cli/options/arguments.hpp"
#include "estimator/base/installation.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

/// The folder that has the Python part: beside the catalogues, in a clone as in an
/// installation; "": it is not there.
std::string python_folder() {
  std::error_code code;
  for (const fs::path& configs : config_folders()) {
    const fs::path folder = fs::weakly_canonical(configs, code).parent_path() / "python";
    if (!code && fs::exists(folder / "stowage" / "__main__.py", code)) return folder.string();
  }
  return {};
}

}  // namespace

std::optional<Diagnostic> python_command(std::span<const std::string> words) {
  if (words.empty() || (words.front() != "record" && words.front() != "fit")) return std::nullopt;
  const bool records = words.front() == "record";
  std::string line = "python3 -m stowage";
  for (const std::string& word : words) line += ' ' + shell_word(word);
  if (words.size() == 1) line += " FILE.py";
  if (records && std::ranges::find(words, "-o") == words.end()) line += " -o step.json";
  const std::string folder = python_folder();
  return command_line_error(
      fmt::format("'{}' is a command of the Python part, which runs your code in your Python",
                  words.front()),
      folder.empty() ? fmt::format("where the package is installed: {}", line)
                     : fmt::format("PYTHONPATH={} {}", shell_word(folder), line));
}

}  // namespace stowage
