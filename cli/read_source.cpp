#include "cli/read_source.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

namespace stowage {

namespace {
constexpr std::size_t most_bytes = std::size_t{1} << 30;
}

Result<SourceTextPtr> read_source(const std::string& path) {
  std::error_code ignored;
  if (path != "-" && std::filesystem::is_directory(path, ignored)) {
    return failure(fmt::format("'{}' is a folder", path));
  }
  std::ifstream file;
  if (path != "-") {
    errno = 0;
    file.open(path, std::ios::binary);
    if (!file) return failure(fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  }
  std::istream& stream = path == "-" ? std::cin : file;
  std::string text;
  std::vector<char> chunk(std::size_t{1} << 20);
  while (stream) {
    stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > most_bytes) return failure(fmt::format("'{}' is over 1 GiB", path));
  }
  if (stream.bad()) return failure(fmt::format("cannot read '{}'", path));
  return std::make_shared<const SourceText>(SourceText{.name = path, .text = std::move(text)});
}

}  // namespace stowage
