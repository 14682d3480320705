// SectionWriter: writes a plan's first document, mapping by mapping, with Section's functions.
#pragma once

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "estimator/base/bytes.hpp"
#include "estimator/card/software_stack.hpp"

namespace stowage {

/// In double quotes, with escapes: any text reads back byte for byte.
[[nodiscard]] std::string yaml_quoted(std::string_view text);

class SectionWriter {
 public:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), "{:{}}", "", indentation_);
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_.push_back('\n');
  }

  /// Writes "- ", then what `content` writes behind it and below.
  template <typename Content>
  void item(const Content& content) {
    line("-");
    indentation_ += 2;
    content();
    indentation_ -= 2;
  }

  /// Writes "name:", then what `content` writes below it.
  template <typename Content>
  void section(std::string_view name, const Content& content) {
    line("{}:", name);
    indentation_ += 2;
    content();
    indentation_ -= 2;
  }

  void text(std::string_view key, const std::string& value) {
    line("{}: {}", key, yaml_quoted(value));
  }
  void name(std::string_view key, const std::string& value) { line("{}: {}", key, value); }
  void version(std::string_view key, const ReleaseVersion& value) {
    line("{}: {}", key, yaml_quoted(to_string(value)));
  }
  void integer(std::string_view key, std::int64_t, std::int64_t, std::int64_t value) {
    line("{}: {}", key, value);
  }
  void count(std::string_view key, int value) { line("{}: {}", key, value); }
  void bytes(std::string_view key, Bytes value) { line("{}: {}", key, value.count()); }
  void optional_bytes(std::string_view key, const std::optional<Bytes>& value) {
    if (value) bytes(key, *value);
  }
  void real(std::string_view key, double value) { line("{}: {}", key, value); }
  void bytes_or_none(std::string_view key, Bytes value) {
    if (value > Bytes()) bytes(key, value);
  }
  void optional_real(std::string_view key, const std::optional<double>& value) {
    if (value) real(key, *value);
  }
  void boolean(std::string_view key, bool value) { line("{}: {}", key, value); }
  template <typename Enum, std::size_t count>
  void choice(std::string_view key, const std::array<Enum, count>&, Enum value) {
    line("{}: {}", key, to_string(value));
  }
  /// Writes a text of several lines as a literal block where its bytes allow that. The block's
  /// chomping indicator says whether the text ends in newlines.
  void literal(std::string_view key, std::string_view text);

  void raw(std::string_view text) { out_.append(text.data(), text.data() + text.size()); }
  [[nodiscard]] std::string written() const { return fmt::to_string(out_); }

 private:
  fmt::memory_buffer out_;
  int indentation_ = 0;
};

}  // namespace stowage
