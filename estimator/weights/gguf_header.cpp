#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <optional>

#include "estimator/weights/element_format.hpp"
#include "estimator/weights/stored_weights.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "GGUF";
constexpr std::uint64_t most_entries = 1'000'000;
constexpr std::uint64_t longest_name = 65'536;
constexpr std::uint32_t most_dimensions = 4;
constexpr std::uint64_t usual_alignment = 32;
constexpr std::uint32_t string_type = 8, array_type = 9, uint32_type = 4;
/// Bytes of the value types 0 to 12; 0: of no fixed size.
constexpr std::array<std::uint64_t, 13> value_bytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/// Reads forward; whatever leads beyond the file's end fails.
class GgufStream {
 public:
  GgufStream(const fs::path& path, std::uint64_t size)
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

  std::optional<std::string> text(std::uint64_t longest) {
    const auto length = number<std::uint64_t>();
    if (!length || *length > longest || *length > left()) return std::nullopt;
    std::string value(static_cast<std::size_t>(*length), '\0');
    if (!file_.read(value.data(), static_cast<std::streamsize>(value.size()))) return std::nullopt;
    at_ += *length;
    return value;
  }

  bool skip(std::uint64_t bytes) {
    if (bytes > left()) return false;
    file_.seekg(static_cast<std::streamoff>(bytes), std::ios::cur);
    at_ += bytes;
    return file_.good();
  }

  [[nodiscard]] std::uint64_t at() const { return at_; }
  [[nodiscard]] std::uint64_t left() const { return size_ - at_; }

 private:
  std::ifstream file_;
  std::uint64_t size_, at_ = 0;
};

/// Passes over one value; arrays of arrays to a depth of 4.
bool skip_value(GgufStream& stream, std::uint32_t type, int depth = 0) {
  if (type == string_type) {
    const auto length = stream.number<std::uint64_t>();
    return length && stream.skip(*length);
  }
  if (type != array_type) return type < value_bytes.size() && stream.skip(value_bytes[type]);
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

struct PlacedTensor {
  StoredTensor tensor;
  std::uint64_t offset = 0;
};

/// nullopt: the info is cut off or says what cannot be; `mistake` then says more where it can.
std::optional<PlacedTensor> read_info(GgufStream& stream, std::string& mistake) {
  PlacedTensor placed;
  const auto name = stream.text(longest_name);
  const auto rank = stream.number<std::uint32_t>();
  if (!name || !rank) return std::nullopt;
  placed.tensor.name = *name;
  if (*rank > most_dimensions) {
    mistake = fmt::format("tensor '{}' has {} dimensions", *name, *rank);
    return std::nullopt;
  }
  std::int64_t elements = 1;
  for (std::uint32_t i = 0; i < *rank; ++i) {
    const auto dimension = stream.number<std::uint64_t>();
    if (!dimension) return std::nullopt;
    if (*dimension == 0 || *dimension > static_cast<std::uint64_t>(
                                            std::numeric_limits<std::int64_t>::max() / elements)) {
      mistake = fmt::format("the elements of tensor '{}' leave 64 bits", *name);
      return std::nullopt;
    }
    elements *= static_cast<std::int64_t>(*dimension);
    placed.tensor.shape.push_back(static_cast<std::int64_t>(*dimension));
  }
  // The fastest dimension comes first in the file.
  std::ranges::reverse(placed.tensor.shape);
  const auto type = stream.number<std::uint32_t>();
  const auto offset = stream.number<std::uint64_t>();
  if (!type || !offset) return std::nullopt;
  const auto format = ggml_format(*type);
  const auto bytes = format ? stored_bytes(*format, elements) : std::nullopt;
  if (!bytes) {
    mistake =
        format
            ? fmt::format("the elements of tensor '{}' are no blocks of {}", *name, format->name)
            : fmt::format("tensor '{}' has a format of number {}, which is unknown", *name, *type);
    return std::nullopt;
  }
  placed.tensor.format = format->name;
  placed.tensor.bytes = Bytes(*bytes);
  placed.offset = *offset;
  return placed;
}

}  // namespace

bool is_gguf(std::string_view head) { return head.starts_with(magic); }

Result<StoredWeights> read_gguf(const fs::path& path) {
  const std::string name = path.string();
  const auto refuse = [&](std::string_view what) {
    return failure(fmt::format("'{}' is no GGUF file that can be read: {}", name, what));
  };
  std::error_code code;
  const std::uint64_t size = fs::file_size(path, code);
  if (code) return failure(fmt::format("cannot read '{}': {}", name, code.message()));
  GgufStream stream(path, size);
  const auto first = stream.number<std::uint32_t>();
  if (!first || *first != 0x46554747) return refuse("it does not begin with 'GGUF'");
  const auto version = stream.number<std::uint32_t>();
  if (!version || *version < 2 || *version > 3) return refuse("its version is not 2 or 3");
  const auto count = stream.number<std::uint64_t>(), pairs = stream.number<std::uint64_t>();
  if (!count || !pairs) return refuse("its header is cut off");
  if (*count > most_entries || *pairs > most_entries) {
    return refuse(fmt::format("it states {} tensors and {} keys", *count, *pairs));
  }
  std::uint64_t alignment = usual_alignment;
  for (std::uint64_t i = 0; i < *pairs; ++i) {
    const auto key = stream.text(longest_name);
    const auto type = stream.number<std::uint32_t>();
    if (!key || !type) return refuse(fmt::format("its key number {} is cut off", i + 1));
    if (*key == "general.alignment" && *type == uint32_type) {
      alignment = stream.number<std::uint32_t>().value_or(0);
      if (alignment == 0 || alignment > 1U << 20) return refuse("its alignment is none");
    } else if (!skip_value(stream, *type)) {
      return refuse(fmt::format("the value of its key '{}' is cut off or of no known type", *key));
    }
  }
  std::vector<PlacedTensor> placed;
  for (std::uint64_t i = 0; i < *count; ++i) {
    std::string mistake;
    auto tensor = read_info(stream, mistake);
    if (!tensor) {
      return refuse(mistake.empty() ? fmt::format("its tensor number {} is cut off", i + 1)
                                    : mistake);
    }
    placed.push_back(*std::move(tensor));
  }
  const std::uint64_t start = (stream.at() + alignment - 1) / alignment * alignment;
  const std::uint64_t data = size > start ? size - start : 0;
  std::ranges::stable_sort(placed, {}, &PlacedTensor::offset);
  StoredWeights weights{.kind = "GGUF", .files = {path.filename().string()}};
  std::uint64_t end = 0;
  for (PlacedTensor& one : placed) {
    const auto bytes = static_cast<std::uint64_t>(one.tensor.bytes.count());
    if (one.offset > data || bytes > data - one.offset) {
      return refuse(fmt::format("tensor '{}' ends beyond the file", one.tensor.name));
    }
    if (one.offset < end)
      return refuse(fmt::format("tensor '{}' overlaps another", one.tensor.name));
    end = one.offset + bytes;
    one.tensor.file = weights.files.front();
    weights.tensors.push_back(std::move(one.tensor));
  }
  return weights;
}

}  // namespace stowage
