// FlagList: options of another program's command line, as an array of a shell script:
//
//   LLAMA_ARGS=(
//     -ngl 20
//   )
//
// which `llama-server -m model.gguf "${LLAMA_ARGS[@]}"` takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stowage {

class FlagList {
 public:
  explicit FlagList(std::string_view array) : text_(std::string(array) + "=(\n") {}

  /// An option as the other program spells it, without its dashes: those of this program's own
  /// command line are written in cli alone, and a test refuses them elsewhere.
  void add(std::string_view option) { text_ += spelled(option) + '\n'; }
  void add(std::string_view option, std::string_view value) {
    text_ += spelled(option) + ' ' + std::string(value) + '\n';
  }
  void add(std::string_view option, std::int64_t value) { add(option, std::to_string(value)); }

  [[nodiscard]] std::string text() const { return text_ + ")\n"; }

 private:
  /// One dash before up to three letters, as llama.cpp's short options have it, else two.
  static std::string spelled(std::string_view option) {
    return (option.size() <= 3 ? "  -" : "  --") + std::string(option);
  }

  std::string text_;
};

}  // namespace stowage
