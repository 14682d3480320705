#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "estimator/base/read_source.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"
#include "estimator/weights/element_format.hpp"
#include "estimator/weights/stored_weights.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t length_bytes = 8;
// The format allows 100 MB; a header of that size would describe a million tensors.
constexpr std::int64_t longest_header = std::int64_t{16} << 20;

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

struct Header {
  SourceTextPtr text;
  std::int64_t data = 0;  ///< bytes behind the header
};

Result<Header> read_header(const fs::path& path) {
  std::error_code code;
  const auto size = static_cast<std::int64_t>(fs::file_size(path, code));
  if (code) return failure(fmt::format("cannot read '{}': {}", path.string(), code.message()));
  const std::string bytes =
      read_file_start(path.string(), static_cast<std::size_t>(length_bytes)).value_or("");
  if (bytes.size() < static_cast<std::size_t>(length_bytes)) {
    return failure(fmt::format("'{}' is no safetensors file: it has {} bytes", path.string(),
                               std::max<std::int64_t>(size, 0)));
  }
  const std::uint64_t length = little_endian(bytes);
  const auto most = static_cast<std::uint64_t>(size - length_bytes);
  if (length > most) {
    return failure(
        fmt::format("'{}' is cut off: its header has {} bytes, and behind the length there are {}",
                    path.string(), length, most));
  }
  if (length > static_cast<std::uint64_t>(longest_header)) {
    return failure(fmt::format("the header of '{}' has {} bytes; at most {} are read",
                               path.string(), length, longest_header));
  }
  const std::size_t end = static_cast<std::size_t>(length_bytes) + static_cast<std::size_t>(length);
  std::string text = read_file_start(path.string(), end).value_or("");
  if (text.size() < end) {
    return failure(fmt::format("cannot read the header of '{}'", path.string()));
  }
  text.erase(0, static_cast<std::size_t>(length_bytes));
  return Header{
      std::make_shared<const SourceText>(SourceText{path.string() + " (header)", std::move(text)}),
      size - length_bytes - static_cast<std::int64_t>(length)};
}

std::optional<std::int64_t> whole_number(const YamlNode& node) {
  std::int64_t value = 0;
  const char* const end = node.text.data() + node.text.size();
  if (!node.is_scalar() || node.quoted || node.text.empty()) return std::nullopt;
  const auto [rest, error] = std::from_chars(node.text.data(), end, value);
  if (error != std::errc() || rest != end || value < 0) return std::nullopt;
  return value;
}

struct Extent {
  std::int64_t begin = 0, end = 0;
  Mark mark;
  std::string name;
};

class TensorReader {
 public:
  TensorReader(Mistakes& mistakes, std::int64_t data) : mistakes_(mistakes), data_(data) {}

  std::optional<StoredTensor> read(const YamlNode& key, const YamlNode& value) {
    const auto wrong = [&](const YamlNode& at, std::string message) {
      mistakes_.error(at.mark, std::move(message));
      return std::nullopt;
    };
    if (!value.is_mapping()) {
      return wrong(value, fmt::format("'{}' must be a mapping, not {}", key.text, describe(value)));
    }
    const YamlNode *dtype = value.find("dtype"), *shape = value.find("shape"),
                   *offsets = value.find("data_offsets");
    if (dtype == nullptr || shape == nullptr || offsets == nullptr) {
      return wrong(key, fmt::format("'{}' lacks dtype, shape or data_offsets", key.text));
    }
    const auto format = dtype->is_scalar() ? safetensors_format(dtype->text) : std::nullopt;
    if (!format)
      return wrong(*dtype, fmt::format("{} is no format of safetensors", describe(*dtype)));
    StoredTensor tensor{.name = key.text, .format = dtype->text};
    std::int64_t elements = 1;
    if (!shape->is_sequence()) return wrong(*shape, "a shape is a list of integers");
    for (const YamlNode* item : shape->items) {
      const auto dimension = whole_number(*item);
      if (!dimension) return wrong(*item, fmt::format("{} is no dimension", describe(*item)));
      if (*dimension > 0 && elements > std::numeric_limits<std::int64_t>::max() / *dimension) {
        return wrong(*item, fmt::format("the elements of '{}' leave 64 bits", key.text));
      }
      elements *= *dimension;
      tensor.shape.push_back(*dimension);
    }
    if (!offsets->is_sequence() || offsets->items.size() != 2) {
      return wrong(*offsets, "data_offsets are two integers");
    }
    const auto begin = whole_number(*offsets->items[0]), end = whole_number(*offsets->items[1]);
    if (!begin || !end || *begin > *end) return wrong(*offsets, "data_offsets are two integers");
    if (*end > data_) {
      return wrong(*offsets, fmt::format("'{}' ends at byte {} of {} on disk: the file is cut off",
                                         key.text, *end, data_));
    }
    const auto bytes = stored_bytes(*format, elements);
    if (!bytes || *bytes != *end - *begin) {
      return wrong(*offsets, fmt::format("'{}' has {} bytes, and its shape in {} wants {}",
                                         key.text, *end - *begin, dtype->text,
                                         bytes ? std::to_string(*bytes) : "more"));
    }
    tensor.bytes = Bytes(*bytes);
    extents_.push_back({*begin, *end, key.mark, key.text});
    return tensor;
  }

  void check_overlaps() {
    std::ranges::sort(extents_, {}, &Extent::begin);
    for (std::size_t i = 1; i < extents_.size(); ++i) {
      if (extents_[i].begin < extents_[i - 1].end) {
        mistakes_.error(extents_[i].mark, fmt::format("'{}' and '{}' overlap", extents_[i - 1].name,
                                                      extents_[i].name));
      }
    }
  }

 private:
  Mistakes& mistakes_;
  std::int64_t data_;
  std::vector<Extent> extents_;
};

}  // namespace

bool is_safetensors(std::string_view head, std::int64_t size) {
  if (head.size() <= static_cast<std::size_t>(length_bytes)) return false;
  const std::uint64_t length = little_endian(head.substr(0, length_bytes));
  // A text's first eight characters make a number beyond any file.
  return head[length_bytes] == '{' && length > 1 && length < std::uint64_t{1} << 40 &&
         size > length_bytes;
}

Result<StoredWeights> read_safetensors(const fs::path& path) {
  const auto header = read_header(path);
  if (!header) return tl::unexpected(header.error());
  const auto document = read_yaml(header->text);
  if (!document) return tl::unexpected(document.error());
  Mistakes mistakes(header->text);
  for (const Diagnostic& mistake : document->mistakes) mistakes.add(mistake);
  const YamlNode& root = *document->root;
  StoredWeights weights{.kind = "safetensors", .files = {path.filename().string()}};
  if (!root.is_mapping()) {
    mistakes.error(root.mark, fmt::format("a header is a mapping, not {}", describe(root)));
  }
  TensorReader reader(mistakes, header->data);
  for (std::size_t i = 0; i < (root.is_mapping() ? root.entry_count() : 0); ++i) {
    if (root.key(i).text == "__metadata__") continue;
    if (auto tensor = reader.read(root.key(i), root.value(i))) {
      tensor->file = weights.files.front();
      weights.tensors.push_back(*std::move(tensor));
    }
  }
  reader.check_overlaps();
  if (mistakes.any_errors()) return tl::unexpected(std::move(mistakes).in_order());
  return weights;
}

}  // namespace stowage
