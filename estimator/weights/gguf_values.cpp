#include "estimator/weights/gguf_values.hpp"

#include <fmt/format.h>

#include <bit>

namespace stowage {

namespace {

enum GgufType : std::uint32_t {
  gguf_uint8,
  gguf_int8,
  gguf_uint16,
  gguf_int16,
  gguf_uint32,
  gguf_int32,
  gguf_float32,
  gguf_bool,
  gguf_string,
  gguf_array,
  gguf_uint64,
  gguf_int64,
  gguf_float64
};
/// Bytes of the value types 0 to 12; 0: of no fixed size.
constexpr std::array<std::uint64_t, 13> value_bytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

bool skip_value(GgufStream& stream, std::uint32_t type, int depth) {
  if (type == gguf_string) {
    const auto length = stream.number<std::uint64_t>();
    return length && stream.skip(*length);
  }
  if (type != gguf_array) return type < value_bytes.size() && stream.skip(value_bytes[type]);
  const auto element = stream.number<std::uint32_t>();
  const auto count = stream.number<std::uint64_t>();
  if (!element || !count || depth >= 4 || *element >= value_bytes.size()) return false;
  if (value_bytes[*element] > 0) {
    return *count <= stream.left() / value_bytes[*element] &&
           stream.skip(*count * value_bytes[*element]);
  }
  for (std::uint64_t i = 0; i < *count; ++i) {
    if (!skip_value(stream, *element, depth + 1)) return false;
  }
  return true;
}

template <typename Word, typename Value>
std::optional<std::string> number_text(GgufStream& stream) {
  const auto word = stream.number<Word>();
  if (!word) return std::nullopt;
  return fmt::format("{}", std::bit_cast<Value>(*word));
}

/// nullopt: cut off, or no number.
std::optional<std::string> scalar_text(GgufStream& stream, std::uint32_t type) {
  switch (type) {
    case gguf_uint8:
      return number_text<std::uint8_t, std::uint8_t>(stream);
    case gguf_int8:
      return number_text<std::uint8_t, std::int8_t>(stream);
    case gguf_uint16:
      return number_text<std::uint16_t, std::uint16_t>(stream);
    case gguf_int16:
      return number_text<std::uint16_t, std::int16_t>(stream);
    case gguf_uint32:
      return number_text<std::uint32_t, std::uint32_t>(stream);
    case gguf_int32:
      return number_text<std::uint32_t, std::int32_t>(stream);
    case gguf_float32:
      return number_text<std::uint32_t, float>(stream);
    case gguf_uint64:
      return number_text<std::uint64_t, std::uint64_t>(stream);
    case gguf_int64:
      return number_text<std::uint64_t, std::int64_t>(stream);
    case gguf_float64:
      return number_text<std::uint64_t, double>(stream);
    case gguf_bool: {
      const auto byte = stream.number<std::uint8_t>();
      if (!byte) return std::nullopt;
      return std::string(*byte != 0 ? "true" : "false");
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> GgufStream::text(std::uint64_t longest) {
  const auto length = number<std::uint64_t>();
  if (!length || *length > longest || *length > left()) return std::nullopt;
  std::string value(static_cast<std::size_t>(*length), '\0');
  if (!bytes(value)) return std::nullopt;
  return value;
}

bool GgufStream::bytes(std::string& into) {
  if (into.size() > left() || !file_.read(into.data(), static_cast<std::streamsize>(into.size()))) {
    return false;
  }
  at_ += into.size();
  return true;
}

bool GgufStream::skip(std::uint64_t bytes) {
  if (bytes > left()) return false;
  file_.seekg(static_cast<std::streamoff>(bytes), std::ios::cur);
  at_ += bytes;
  return file_.good();
}

bool read_gguf_value(GgufStream& stream, std::uint32_t type, std::optional<std::string>& text) {
  if (type == gguf_array || type >= value_bytes.size()) return skip_value(stream, type, 0);
  if (type != gguf_string) {
    auto scalar = scalar_text(stream, type);
    if (!scalar) return false;
    text = std::move(scalar);
    return true;
  }
  const auto length = stream.number<std::uint64_t>();
  if (!length) return false;
  if (*length > longest_stated_text) return stream.skip(*length);
  std::string value(static_cast<std::size_t>(*length), '\0');
  if (!stream.bytes(value)) return false;
  text = std::move(value);
  return true;
}

}  // namespace stowage
