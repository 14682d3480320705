// StoredWeights: the tensors of weight files from their headers: names, formats, shapes, sizes on
// disk.
//
//   safetensors   8 bytes little-endian: the header's length; a JSON header; the data
//                 (huggingface.co/docs/safetensors, "Format")
//   GGUF          magic, version, counts, key-value pairs, tensor infos, aligned data
//                 (ggml's docs/gguf.md, versions 2 and 3)
//
// Only headers are read, never the data, and a header with wrong lengths needs no more memory than
// its bytes on disk.
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
  std::string file;  ///< the file's name if there are several
};

/// A key of a GGUF header with its value as text.
struct StatedValue {
  std::string key, text;
};

struct StoredWeights {
  std::string kind;                ///< "safetensors" or "GGUF"
  std::vector<std::string> files;  ///< names, in reading order
  std::vector<StoredTensor> tensors;
  /// GGUF: the keys with a number or a short text, in the file's order, without the tokenizer's;
  /// for a folder those of its first file.
  std::vector<StatedValue> stated;
};

/// The value of `key`; empty: it is not stated.
[[nodiscard]] std::string_view stated_value(const StoredWeights& weights, std::string_view key);
/// The transformers `model_type` of a GGUF architecture (named as in llama.cpp's
/// src/llama-arch.cpp); empty: it is not a supported one.
[[nodiscard]] std::string_view model_type_of_gguf(std::string_view architecture);

/// The tensors, elements and bytes of one format.
struct FormatTotal {
  std::string format;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  Bytes bytes;
};
/// The totals of all formats, largest first, then by name.
[[nodiscard]] std::vector<FormatTotal> format_totals(const StoredWeights& weights);

/// Whether a file of `size` bytes that starts with `head` has the format.
[[nodiscard]] bool is_safetensors(std::string_view head, std::int64_t size);
[[nodiscard]] bool is_gguf(std::string_view head);

/// Errors: a header that is truncated, too long or malformed; tensors that overlap, lie beyond the
/// file, or whose bytes do not match their shape.
[[nodiscard]] Result<StoredWeights> read_safetensors(const std::filesystem::path& path);
[[nodiscard]] Result<StoredWeights> read_gguf(const std::filesystem::path& path);
/// Reads a folder: the files that model.safetensors.index.json names, else all *.safetensors files,
/// else all *.gguf files. Further errors: an index that names a missing file, or a file outside the
/// folder.
[[nodiscard]] Result<StoredWeights> read_weight_folder(const std::filesystem::path& folder);
/// Whether read_weight_folder() would find a file.
[[nodiscard]] bool has_weights(const std::filesystem::path& folder);
/// Reads a file of either kind, or a folder.
[[nodiscard]] Result<StoredWeights> read_weights(const std::filesystem::path& path);

}  // namespace stowage
