#include "estimator/document/step_text.hpp"

#include <cmath>

namespace stowage::step_text {

std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20) {
      result += fmt::format("\\u{:04x}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string written(const Affine& size) {
  if (size.slope == 0) return fmt::format("{}", size.constant);
  return fmt::format("[{},{}]", size.constant, size.slope);
}

std::string written(double value) {
  if (std::isnan(value)) return R"({"real":"nan"})";
  if (std::isinf(value)) return value > 0 ? R"({"real":"inf"})" : R"({"real":"-inf"})";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string list_of(const std::vector<std::int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

void put_list(Text& text, std::size_t count, const std::function<void(std::size_t)>& item) {
  put(text, "[");
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) put(text, ",");
    item(i);
  }
  put(text, "]");
}

}  // namespace stowage::step_text
