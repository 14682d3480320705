// Broken files of every format that has a reader of its own: cut off at many places, and with bytes
// changed. Each ends in a result or in complaints that can be shown, in little time; the fuzz
// targets (tests/fuzz) look further. STOWAGE_MUTATIONS says how many changed files to try.
#include <doctest/doctest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "estimator/allocator/alloc_conf.hpp"
#include "estimator/card/card_file.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/recorded/complete_step.hpp"
#include "estimator/weights/stored_weights.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/weight_files.hpp"

namespace stowage {

namespace {

constexpr unsigned broken_files_seed = 20270;
constexpr double most_seconds = 10;  // of processor time for one file, under sanitizers too

/// "" or the complaints; both are answers.
using Reader = std::string (*)(const std::string& bytes);

std::string shown(const Diagnostics& mistakes) {
  std::string text = render(mistakes);
  REQUIRE(!text.empty());
  return text;
}

SourceTextPtr broken_text(const std::string& bytes) {
  return std::make_shared<const SourceText>(SourceText{"broken", bytes});
}

std::string read_model_file(const std::string& bytes) {
  const auto imported = import_model(file_head_of(broken_text(bytes)), {.allow_unknown = true});
  if (!imported) return shown(imported.error());
  if (!*imported) return "of no format";
  const auto model = load_model((*imported)->description);
  return model ? "" : shown(model.error());
}

std::string read_recorded_step(const std::string& bytes) {
  const auto document = read_step(broken_text(bytes));
  if (!document) return shown(document.error());
  const auto whole = complete_step(*document);
  return whole ? "" : shown(whole.error());
}

std::string read_description(const std::string& bytes) {
  const auto model = load_model(broken_text(bytes));
  return model ? "" : shown(model.error());
}

std::string read_card_file(const std::string& bytes) {
  const auto card = read_card(broken_text(bytes));
  return card ? "" : shown(card.error());
}

std::string read_calibration_file(const std::string& bytes) {
  const auto card = read_calibration(broken_text(bytes), generic_card(8_GiB));
  return card ? "" : shown(card.error());
}

std::string read_alloc_conf(const std::string& bytes) {
  const auto conf = parse_alloc_conf(bytes);
  return conf ? "" : shown(conf.error());
}

template <Result<StoredWeights> (*read)(const std::filesystem::path&)>
std::string read_weight_file(const std::string& bytes) {
  static const testing::TemporaryFolder folder;
  const std::filesystem::path path = std::filesystem::path(folder.path()) / "broken";
  std::ofstream(path, std::ios::binary) << bytes;
  const auto weights = read(path);
  return weights ? "" : shown(weights.error());
}

struct Sample {
  std::string name, bytes;
  Reader read;
};

Sample sample_file(const std::string& path, Reader read) {
  std::ifstream file(testing::source_path(path), std::ios::binary);
  return {path, {std::istreambuf_iterator<char>(file), {}}, read};
}

/// Of formats with an end: a part of such a file is none.
std::vector<Sample> whole_samples() {
  std::vector<Sample> samples;
  const auto add = [&](const std::string& path, Reader read) {
    samples.push_back(sample_file(path, read));
  };
  add("/tests/onnx/resnet18.onnx", read_model_file);
  for (const char* name : {"cnn", "sequence", "nested"}) {
    add(std::string("/tests/keras/") + name + ".json", read_model_file);
  }
  for (const char* name : {"small-llama", "small-t5", "small-gpt2", "small-mixtral",
                           "small-whisper", "small-swin", "tiny-clip"}) {
    add(std::string("/tests/hf/") + name + "/config.json", read_model_file);
  }
  for (const char* name : {"mlp", "lstm-lm", "gpt2-1layer"}) {
    add(std::string("/tests/recorded/") + name + ".json", read_recorded_step);
  }
  samples.push_back({"safetensors",
                     testing::safetensors_file(std::string(testing::two_stored_tensors), 16),
                     read_weight_file<read_safetensors>});
  samples.push_back({"GGUF", testing::gguf_file(104), read_weight_file<read_gguf>});
  return samples;
}

std::vector<Sample> all_samples() {
  std::vector<Sample> samples = whole_samples();
  for (const char* name : {"mlp", "resnet18", "densenet121", "gpt2"}) {
    samples.push_back(
        sample_file(std::string("/configs/models/") + name + ".yaml", read_description));
  }
  for (const char* name : {"a10", "gtx-1050-ti"}) {
    samples.push_back(sample_file(std::string("/configs/gpus/") + name + ".yaml", read_card_file));
  }
  samples.push_back({"calibration",
                     "h2d_bandwidth: 20 GB/s\nmeasurements:\n  - {runtime: pytorch, cuda: 13.0, "
                     "context: 300 MiB, source: here}\n",
                     read_calibration_file});
  samples.push_back({"allocator settings",
                     "roundup_power2_divisions:[256:1,512:2,1024:4,>:8],max_split_size_mb:64,"
                     "garbage_collection_threshold:0.8",
                     read_alloc_conf});
  return samples;
}

std::string read_in_time(const Sample& sample, const std::string& bytes) {
  const std::clock_t before = std::clock();
  std::string answer = sample.read(bytes);
  const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  REQUIRE(seconds < most_seconds);
  return answer;
}

std::string with_bytes_changed(std::string bytes, std::mt19937& random) {
  for (unsigned edit = 0; edit <= random() % 4; ++edit) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1U << random() % 8));
        break;
      case 2:  // digits and lengths grow
        bytes.insert(at, 1 + random() % 12, "09\xff-"[random() % 4]);
        break;
      default:
        bytes.erase(at, 1 + random() % 8);
    }
    if (bytes.empty()) return "0";
  }
  return bytes;
}

}  // namespace

TEST_CASE("a file of every format is read, and refused where it is cut off") {
  for (const Sample& sample : whole_samples()) {
    CAPTURE(sample.name);
    REQUIRE(sample.bytes.size() > 100);
    CHECK(sample.read(sample.bytes) == "");
    constexpr std::size_t places = 60;
    const std::size_t stride = std::max<std::size_t>(1, sample.bytes.size() / places);
    // The last bytes of a file may be white space.
    for (std::size_t length = 1; length + 2 < sample.bytes.size(); length += stride) {
      CAPTURE(length);
      CHECK(read_in_time(sample, sample.bytes.substr(0, length)) != "");
    }
  }
}

TEST_CASE("a file of any format with its bytes changed is an answer") {
  const char* const wish = std::getenv("STOWAGE_MUTATIONS");
  const int rounds = wish != nullptr ? std::atoi(wish) : 40;
  std::mt19937 random(broken_files_seed);
  for (const Sample& sample : all_samples()) {
    CAPTURE(sample.name);
    CHECK(sample.read(sample.bytes) == "");
    int refused = 0;
    for (int round = 0; round < rounds; ++round) {
      CAPTURE(round);
      refused += read_in_time(sample, with_bytes_changed(sample.bytes, random)).empty() ? 0 : 1;
    }
    CHECK(refused > 0);
  }
}

}  // namespace stowage
