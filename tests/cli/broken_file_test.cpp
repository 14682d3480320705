// Files that are cut off or lie, of every format, in place of MODEL: exit code 2 and a message that
// names the file, whatever the command, and little memory.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/cli/program.hpp"
#include "tests/support/address_sanitizer.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/weight_files.hpp"

namespace stowage {

using testing::Outcome;
using testing::stowage_program;

namespace {

struct BrokenFile {
  std::string name, bytes;
};

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::vector<BrokenFile> cut_off_files() {
  std::vector<BrokenFile> whole;
  for (const char* path : {"/tests/onnx/resnet18.onnx", "/tests/keras/cnn.json",
                           "/tests/recorded/mlp.json", "/tests/hf/small-llama/config.json"}) {
    std::ifstream file(testing::source_path(path), std::ios::binary);
    whole.push_back({std::filesystem::path(path).filename().string(),
                     {std::istreambuf_iterator<char>(file), {}}});
  }
  whole.push_back(
      {"two.safetensors", testing::safetensors_file(std::string(testing::two_stored_tensors), 16)});
  whole.push_back({"two.gguf", testing::gguf_file(104)});
  std::vector<BrokenFile> files;
  for (const BrokenFile& one : whole) {
    for (const std::size_t quarter : {1U, 2U, 3U}) {
      files.push_back({one.name, one.bytes.substr(0, one.bytes.size() * quarter / 4)});
    }
    files.push_back({one.name, one.bytes.substr(0, one.bytes.size() - 3)});
  }
  return files;
}

// Lengths, counts and depths that nothing on disk stands behind.
std::vector<BrokenFile> lying_files() {
  using testing::gguf_text;
  using testing::little_endian;
  constexpr std::uint64_t huge = 1ULL << 62U;
  const std::string ir = "\x08\x0a";
  const std::string nine_bytes_of_length = "\x80\x80\x80\x80\x80\x80\x80\x80\x10";
  return {
      {"claims.onnx", ir + "\x3a" + nine_bytes_of_length + "x"},
      {"endless.onnx", ir + "\x3a" + std::string(40, '\xff')},
      {"deep.json", R"({"class_name": "Sequential", "config": )" + std::string(200'000, '[')},
      {"units.json",
       R"({"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense", "config": )"
       R"({"batch_input_shape": [null, 3], "units": 9223372036854775807}}]}})"},
      {"layers.json",
       R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1099511627776, )"
       R"("num_attention_heads": 4, "intermediate_size": 8, "vocab_size": 10})"},
      {"nested.json", R"({"model_type": "llama", "x": )" + repeated(R"({"a": )", 100'000)},
      {"deep.safetensors", testing::safetensors_file(repeated(R"({"a": )", 50'000), 0)},
      {"many.gguf", "GGUF" + little_endian(3, 4) + little_endian(huge, 8) + little_endian(huge, 8)},
      {"array.gguf", "GGUF" + little_endian(3, 4) + little_endian(0, 8) + little_endian(1, 8) +
                         gguf_text("a") + little_endian(9, 4) + little_endian(4, 4) +
                         little_endian(huge, 8)},
      {"step.json", R"({"schema_version": 1, "kind": "step", "step": {"storages": )" +
                        std::string(200'000, '[')},
  };
}

void check_refused(const std::vector<BrokenFile>& files, const testing::Circumstances& how) {
  const testing::TemporaryFolder folder;
  for (const BrokenFile& file : files) {
    const std::string path = (std::filesystem::path(folder.path()) / file.name).string();
    std::ofstream(path, std::ios::binary) << file.bytes;
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"summary", path}, {"check", path, "--gpu", "rtx3090"}}) {
      CAPTURE(words[0]);
      CAPTURE(file.name);
      CAPTURE(file.bytes.size());
      const Outcome outcome = stowage_program(words, how);
      CHECK(outcome.exit_code == 2);
      CHECK(outcome.out == "");
      CHECK(outcome.err.find("error: ") != std::string::npos);
      CHECK(outcome.err.find(file.name) != std::string::npos);
    }
  }
}

}  // namespace

TEST_CASE("a model's file that is cut off is refused") { check_refused(cut_off_files(), {}); }

TEST_CASE("a GGUF file that states values and no architecture is an answer") {
  using testing::gguf_text;
  using testing::little_endian;
  const testing::TemporaryFolder folder;
  const std::string path =
      folder.file("plain.gguf", "GGUF" + little_endian(3, 4) + little_endian(0, 8) +
                                    little_endian(1, 8) + gguf_text("general.file_type") +
                                    little_endian(4, 4) + little_endian(15, 4));
  const Outcome outcome = stowage_program({"summary", path});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find("What the header states:") != std::string::npos);
  CHECK(outcome.out.find("Architecture") == std::string::npos);
  const Outcome json = stowage_program({"summary", path, "--format", "json"});
  CHECK(json.exit_code == 0);
  CHECK(json.out.find("\"architecture\": null") != std::string::npos);
}

TEST_CASE("a model's file that lies about its sizes is refused in little memory") {
#if STOWAGE_ADDRESS_SANITIZER  // which reserves terabytes
  check_refused(lying_files(), {});
#else
  check_refused(lying_files(), {.address_space = 512_MiB});
#endif
}

}  // namespace stowage
