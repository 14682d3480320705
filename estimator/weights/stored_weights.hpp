// StoredWeights: what the headers of weight files say: names, formats, shapes, sizes on disk.
//
//   safetensors   8 bytes little-endian: the header's length; a JSON header; the data
//                 (huggingface.co/docs/safetensors, "Format")
//   GGUF          magic, version, counts, key-value pairs, tensor infos, aligned data
//                 (ggml's docs/gguf.md, versions 2 and 3)
//
// Only headers are read, never the data, and a header that lies about its lengths costs no more
// memory than it has bytes on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct StoredTensor {
  std::string name;
  std::string format;  ///< the file's own word: "BF16", "Q4_K"
  std::vector<std::int64_t> shape;
  Bytes bytes;
  std::string file;  ///< of several: the file's name
};

/// A key of the header with its value as text.
struct StatedValue {
  std::string key, text;
};

struct StoredWeights {
  std::string kind;                ///< "safetensors" or "GGUF"
  std::vector<std::string> files;  ///< names, in reading order
  std::vector<StoredTensor> tensors;
  /// GGUF: the keys that have one number or a short text, in the file's order, without the
  /// tokenizer's; of a folder those of its first file.
  std::vector<StatedValue> stated;
};

/// The value of `key`; empty: it is not stated.
[[nodiscard]] std::string_view stated_value(const StoredWeights& weights, std::string_view key);
/// The `model_type` of transformers whose networks GGUF's architecture of that name holds (the
/// names of llama.cpp's src/llama-arch.cpp); empty: one that is not read from a config.json.
[[nodiscard]] std::string_view model_type_of_gguf(std::string_view architecture);

/// One format's share of all tensors.
struct FormatTotal {
  std::string format;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  Bytes bytes;
};
/// Largest first, then by name.
[[nodiscard]] std::vector<FormatTotal> format_totals(const StoredWeights& weights);

/// By the first bytes of a file of `size` bytes.
[[nodiscard]] bool is_safetensors(std::string_view head, std::int64_t size);
[[nodiscard]] bool is_gguf(std::string_view head);

/// Errors: a header that is cut off, too long, not of its format; tensors that overlap, lie beyond
/// the file, or whose bytes are not those of their shape.
[[nodiscard]] Result<StoredWeights> read_safetensors(const std::filesystem::path& path);
[[nodiscard]] Result<StoredWeights> read_gguf(const std::filesystem::path& path);
/// All of a folder: those that model.safetensors.index.json names, else every *.safetensors file,
/// else every *.gguf file. Errors also: an index that names what is not there, or a file outside.
[[nodiscard]] Result<StoredWeights> read_weight_folder(const std::filesystem::path& folder);
/// Whether read_weight_folder would find any.
[[nodiscard]] bool has_weights(const std::filesystem::path& folder);
/// A file of either kind, or a folder.
[[nodiscard]] Result<StoredWeights> read_weights(const std::filesystem::path& path);

}  // namespace stowage
