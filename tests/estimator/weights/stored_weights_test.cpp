// Headers of safetensors and GGUF files: what they say, and what is wrong with one.
#include "estimator/weights/stored_weights.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "estimator/weights/gguf_values.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/weight_files.hpp"

namespace stowage {

namespace {

using testing::gguf_file;
using testing::gguf_text;
using testing::little_endian;
using testing::safetensors_file;
using testing::two_stored_tensors;

class WeightFiles {
 public:
  std::string write(const std::string& name, const std::string& content) const {
    std::string path = (std::filesystem::path(folder_.path()) / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  [[nodiscard]] std::string path() const { return folder_.path(); }

 private:
  testing::TemporaryFolder folder_;
};

std::string mistake_of(const Result<StoredWeights>& read) {
  return read ? "" : render(read.error());
}

}  // namespace

TEST_CASE("a safetensors header's tensors have their formats and sizes") {
  const WeightFiles files;
  const auto read = read_safetensors(
      files.write("m.safetensors", safetensors_file(std::string(two_stored_tensors), 16)));
  REQUIRE_MESSAGE(read, mistake_of(read));
  const auto totals = format_totals(*read);
  REQUIRE(totals.size() == 2);
  CHECK(totals[0].format == "BF16");
  CHECK(totals[0].elements == 6);
  CHECK(totals[0].bytes == Bytes(12));
  CHECK(totals[1].format == "F32");
  CHECK(totals[1].bytes == Bytes(4));
}

TEST_CASE("a hostile safetensors header is refused") {
  const WeightFiles files;
  const auto refused = [&](const std::string& content) {
    return mistake_of(read_safetensors(files.write("bad.safetensors", content)));
  };
  CHECK(refused("ab").find("is no safetensors file: it has 2 bytes") != std::string::npos);
  CHECK(refused(little_endian(~std::uint64_t{0}, 8) + "{}").find("is cut off") !=
        std::string::npos);
  CHECK(
      refused(safetensors_file(std::string(two_stored_tensors), 15)).find("the file is cut off") !=
      std::string::npos);
  CHECK(
      refused(
          safetensors_file(
              R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "b": {"dtype": "F32", "shape": [1], "data_offsets": [2, 6]}})",
              6))
          .find("'a' and 'b' overlap") != std::string::npos);
  CHECK(
      refused(
          safetensors_file(
              R"({"a": {"dtype": "F32", "shape": [9223372036854775807, 8], "data_offsets": [0, 4]}})",
              4))
          .find("the elements of 'a' leave 64 bits") != std::string::npos);
  CHECK(refused(
            safetensors_file(R"({"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}})", 4))
            .find("is no format of safetensors") != std::string::npos);
  CHECK(refused(
            safetensors_file(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}})", 4))
            .find("'a' has 4 bytes, and its shape in F32 wants 8") != std::string::npos);
  CHECK(refused(safetensors_file("[]", 0)).find("a header is a mapping, not a list") !=
        std::string::npos);
}

TEST_CASE("a GGUF header's tensors have their formats and sizes") {
  const WeightFiles files;
  const auto read = read_gguf(files.write("m.gguf", gguf_file(32 + 72)));
  REQUIRE_MESSAGE(read, mistake_of(read));
  REQUIRE(read->tensors.size() == 2);
  CHECK(read->tensors[0].format == "F32");
  CHECK(read->tensors[1].format == "Q4_0");
  CHECK(read->tensors[1].shape == std::vector<std::int64_t>{2, 64});
  CHECK(read->tensors[1].bytes == Bytes(72));
}

TEST_CASE("a GGUF header states an architecture and numbers, the tokenizer's left out") {
  const WeightFiles files;
  const auto pair = [](const std::string& key, int type, const std::string& value) {
    return gguf_text(key) + little_endian(static_cast<std::uint64_t>(type), 4) + value;
  };
  const std::string pairs =
      pair("general.architecture", 8, gguf_text("qwen2moe")) +
      pair("general.license", 8, gguf_text(std::string(longest_stated_text + 1, 'x'))) +
      pair("qwen2moe.block_count", 4, little_endian(24, 4)) +
      pair("qwen2moe.rope.freq_base", 6, little_endian(0x49742400, 4)) +
      pair("qwen2moe.shift", 5, little_endian(0xffffffff, 4)) +
      pair("qwen2moe.tied", 7, little_endian(1, 1)) +
      pair("qwen2moe.layers", 9, little_endian(4, 4) + little_endian(1, 8) + little_endian(7, 4)) +
      pair("tokenizer.ggml.model", 8, gguf_text("gpt2"));
  const auto read = read_gguf(files.write(
      "m.gguf", "GGUF" + little_endian(3, 4) + little_endian(0, 8) + little_endian(8, 8) + pairs));
  REQUIRE_MESSAGE(read, mistake_of(read));
  std::string all;
  for (const StatedValue& stated : read->stated) all += stated.key + " = " + stated.text + "\n";
  CHECK(all ==
        "general.architecture = qwen2moe\nqwen2moe.block_count = 24\n"
        "qwen2moe.rope.freq_base = 1000000\nqwen2moe.shift = -1\nqwen2moe.tied = true\n");
  CHECK(stated_value(*read, "general.architecture") == "qwen2moe");
  CHECK(stated_value(*read, "general.name") == "");
  CHECK(model_type_of_gguf("qwen2moe") == "qwen2_moe");
  CHECK(model_type_of_gguf("rwkv7") == "");
}

TEST_CASE("a GGUF header is refused wherever it is cut off") {
  const WeightFiles files;
  const std::string whole = gguf_file(32 + 72);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(read_gguf(files.write("cut.gguf", whole.substr(0, length))));
  }
  std::string many = whole;
  many.replace(8, 8, little_endian(~std::uint64_t{0}, 8));
  CHECK(mistake_of(read_gguf(files.write("many.gguf", many)))
            .find("it states 18446744073709551615") != std::string::npos);
}

TEST_CASE("a folder's shards are those that its index names") {
  const WeightFiles files;
  files.write("model-1.safetensors", safetensors_file(std::string(two_stored_tensors), 16));
  files.write(
      "model-2.safetensors",
      safetensors_file(R"({"c": {"dtype": "F16", "shape": [5], "data_offsets": [0, 10]}})", 10));
  files.write("stray.safetensors", "no header");
  files.write("model.safetensors.index.json",
              R"({"weight_map": {"a": "model-1.safetensors", "c": "model-2.safetensors"}})");
  const auto read = read_weight_folder(files.path());
  REQUIRE_MESSAGE(read, mistake_of(read));
  CHECK(read->files.size() == 2);
  CHECK(read->tensors.size() == 3);
  files.write("model.safetensors.index.json", R"({"weight_map": {"a": "../secret"}})");
  CHECK(mistake_of(read_weight_folder(files.path()))
            .find("is not the name of a file beside the index") != std::string::npos);
}

}  // namespace stowage
