#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "estimator/weights/element_format.hpp"
#include "estimator/weights/gguf_values.hpp"
#include "estimator/weights/stored_weights.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "GGUF";
constexpr std::uint64_t most_entries = 1'000'000;
constexpr std::uint64_t longest_name = 65'536;
constexpr std::uint32_t most_dimensions = 4;
constexpr std::uint64_t usual_alignment = 32;
constexpr std::uint32_t uint32_type = 4;
constexpr std::size_t most_stated = 100;

/// llama.cpp's architecture names, and the `model_type`s of their networks.
constexpr std::pair<std::string_view, std::string_view> architectures[] = {
    {"bert", "bert"},          {"falcon", "falcon"},      {"gemma2", "gemma2"},
    {"gemma3", "gemma3_text"}, {"gpt2", "gpt2"},          {"gptneox", "gpt_neox"},
    {"llama", "llama"},        {"phi2", "phi"},           {"phi3", "phi3"},
    {"qwen2", "qwen2"},        {"qwen2moe", "qwen2_moe"}, {"qwen3", "qwen3"},
    {"qwen3moe", "qwen3_moe"}, {"stablelm", "stablelm"},  {"t5", "t5"},
};

struct PlacedTensor {
  StoredTensor tensor;
  std::uint64_t offset = 0;
};

/// nullopt: the info is truncated or impossible; `mistake` may then say more.
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

std::string_view stated_value(const StoredWeights& weights, std::string_view key) {
  const auto found = std::ranges::find(weights.stated, key, &StatedValue::key);
  return found == weights.stated.end() ? std::string_view() : std::string_view(found->text);
}

std::string_view model_type_of_gguf(std::string_view architecture) {
  const auto* const found = std::ranges::find(
      architectures, architecture, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(architectures) ? std::string_view() : found->second;
}

bool is_gguf(std::string_view head) { return head.starts_with(magic); }

/// Reads the fixed header, the key-value pairs and the tensor infos, then checks that the tensors
/// lie within the file and do not overlap.
Result<StoredWeights> read_gguf(const fs::path& path) {
  const std::string name = path.string();
  const auto refuse = [&](std::string_view what) {
    return failure(fmt::format("'{}' is no GGUF file that can be read: {}", name, what));
  };
  std::error_code code;
  const std::uint64_t size = fs::file_size(path, code);
  if (code) return failure(fmt::format("cannot read '{}': {}", name, code.message()));
  if (!fs::is_regular_file(path, code)) return refuse("it is no regular file");
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
  std::vector<StatedValue> stated;
  for (std::uint64_t i = 0; i < *pairs; ++i) {
    const auto key = stream.text(longest_name);
    const auto type = stream.number<std::uint32_t>();
    if (!key || !type) return refuse(fmt::format("its key number {} is cut off", i + 1));
    if (*key == "general.alignment" && *type == uint32_type) {
      alignment = stream.number<std::uint32_t>().value_or(0);
      if (alignment == 0 || alignment > 1U << 20) return refuse("its alignment is none");
      continue;
    }
    std::optional<std::string> text;
    if (!read_gguf_value(stream, *type, text)) {
      return refuse(fmt::format("the value of its key '{}' is cut off or of no known type", *key));
    }
    if (text && !key->starts_with("tokenizer.") && stated.size() < most_stated) {
      stated.push_back({*key, *std::move(text)});
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
  weights.stated = std::move(stated);
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
