// Reads the key-value pairs of a GGUF header: short values as text, others are skipped.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace stowage {

/// Reads a file forward. Every read beyond the file's end fails.
class GgufStream {
 public:
  GgufStream(const std::filesystem::path& path, std::uint64_t size)
      : file_(path, std::ios::binary), size_(size) {}

  template <typename Number>
  std::optional<Number> number() {
    std::array<unsigned char, sizeof(Number)> bytes{};
    if (left() < sizeof(Number) ||
        !file_.read(reinterpret_cast<char*>(bytes.data()), bytes.size())) {
      return std::nullopt;
    }
    at_ += sizeof(Number);
    Number value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      value |= static_cast<Number>(static_cast<Number>(bytes[i]) << (8 * i));
    }
    return value;
  }
  std::optional<std::string> text(std::uint64_t longest);
  bool bytes(std::string& into);  ///< reads into.size() bytes
  bool skip(std::uint64_t bytes);

  [[nodiscard]] std::uint64_t at() const { return at_; }
  [[nodiscard]] std::uint64_t left() const { return size_ - at_; }

 private:
  std::ifstream file_;
  std::uint64_t size_, at_ = 0;
};

inline constexpr std::uint64_t longest_stated_text = 256;  ///< bytes

/// Reads or skips a value of that type; arrays may be nested up to a depth of 4. False: the file is
/// truncated, or the type is unknown. `text` is set for numbers and short strings only.
bool read_gguf_value(GgufStream& stream, std::uint32_t type, std::optional<std::string>& text);

}  // namespace stowage
