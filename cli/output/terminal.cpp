#include "cli/output/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace stowage {

namespace {

constexpr std::size_t least_width = 20;  // narrower ones are taken for a mistake

}  // namespace

bool is_terminal(int descriptor) {
  const char* const terminal = std::getenv("TERM");
  return isatty(descriptor) != 0 && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

bool writes_unicode() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    return locale.find("UTF-8") != std::string_view::npos ||
           locale.find("utf8") != std::string_view::npos;
  }
  return false;
}

std::optional<std::size_t> output_width(int descriptor) {
  std::size_t width = 0;
  if (const char* const columns = std::getenv("COLUMNS"); columns != nullptr) {
    const std::string_view text(columns);
    std::from_chars(text.data(), text.data() + text.size(), width);
  }
  winsize size{};
  if (width == 0 && isatty(descriptor) != 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0)
    width = size.ws_col;
  return width >= least_width ? std::optional(width) : std::nullopt;
}

bool write_quietly(std::FILE* stream, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stream) == text.size() &&
         std::fflush(stream) == 0;
}

}  // namespace stowage
