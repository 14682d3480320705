// ONNX files that PyTorch exported (tests/onnx/export.py), sized beside the project's own
// descriptions of their models: parameters, and the bytes of a training step's tensors and of the
// device. docs/onnx.md has the table of all that were measured, tests/onnx/measured.json the
// numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::source_path;
using testing::stowage_program;

namespace {

struct ExportedFile {
  std::string file, description;
  std::vector<std::string> settings = {};  ///< of both
  std::vector<std::string> of_description = {};
};

json answer(std::vector<std::string> words, const std::vector<std::string>& settings) {
  words.insert(words.end(), settings.begin(), settings.end());
  words.insert(words.end(), {"--format", "json"});
  const Outcome outcome = stowage_program(words);
  REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.out, outcome.err);
  return json::parse(outcome.out);
}

std::int64_t parameters_of(const std::string& model, const std::vector<std::string>& settings) {
  return answer({"summary", model}, settings)["model"]["parameters"];
}

json peak_of(const std::string& model, const std::vector<std::string>& settings) {
  return answer({"check", model, "--gpu", "rtx3090", "--optimizer", "adam"}, settings)["peak"];
}

double relative_difference(const json& a, const json& b) {
  return std::abs(a.get<double>() - b.get<double>()) / b.get<double>();
}

}  // namespace

TEST_CASE("exported files are sized as the descriptions of their models") {
  const std::vector<std::string> images{"--batch", "16"};
  const std::vector<std::string> words{"--batch", "8", "--seq", "64"};
  const std::vector<ExportedFile> files{
      {"resnet18", "resnet18", images},
      {"resnet18.default", "resnet18", images},  // its batch norms were folded
      {"alexnet.opset11", "alexnet", images},
      {"googlenet.traced", "googlenet", images, {"--set", "aux=false"}},
      {"mobilenet_v3_small.traced", "mobilenet_v3_small", images},
      {"small-gpt2.exported", source_path("/tests/hf/small-gpt2"), words},
      {"small-llama.default", source_path("/tests/hf/small-llama"), words},
  };
  constexpr double most_tensors = 0.001;
  constexpr double most_device = 0.02;
  for (const ExportedFile& one : files) {
    CAPTURE(one.file);
    const std::string path = source_path("/tests/onnx/" + one.file + ".onnx");
    std::vector<std::string> own = one.settings;
    own.insert(own.end(), one.of_description.begin(), one.of_description.end());
    CHECK(parameters_of(path, one.settings) == parameters_of(one.description, own));
    const json file = peak_of(path, one.settings);
    const json description = peak_of(one.description, own);
    CHECK(relative_difference(file["tensor_bytes"], description["tensor_bytes"]) <= most_tensors);
    CHECK(relative_difference(file["device_bytes"], description["device_bytes"]) <= most_device);
  }
}

TEST_CASE("all measured files are within 2 percent of their descriptions, or say why not") {
  struct Explained {
    std::string model, how;
    double tensors, device;  ///< shares that they may differ by
  };
  // docs/onnx.md, "Measured", has the reasons.
  const std::vector<Explained> all_explained{
      {"t5-small", "exported", 0.04, 0.04},  {"t5-small", "default", 0.02, 0.02},
      {"small-llama", "traced", 0.04, 0.02}, {"densenet121", "default", 0, 0.17},
      {"vit_b_16", "default", 0.001, 0.06},
  };
  std::ifstream stream(source_path("/tests/onnx/measured.json"));
  const json measured = json::parse(stream);
  int sized = 0;
  std::set<std::string> models;
  for (const json& row : measured["rows"]) {
    const std::string model = row["model"], how = row["how"];
    CAPTURE(model);
    CAPTURE(how);
    if (row.contains("why")) continue;
    const auto explained = std::ranges::find_if(
        all_explained, [&](const Explained& one) { return one.model == model && one.how == how; });
    const bool is_plain = explained == all_explained.end();
    const json& own = row["description"];
    CHECK(relative_difference(row["file"]["tensor_bytes"], own["tensor_bytes"]) <=
          (is_plain ? 0.02 : explained->tensors));
    CHECK(relative_difference(row["file"]["device_bytes"], own["device_bytes"]) <=
          (is_plain ? 0.02 : explained->device));
    models.insert(model);
    ++sized;
  }
  CHECK(models.size() >= 23);
  CHECK(sized >= 60);
}

}  // namespace stowage
